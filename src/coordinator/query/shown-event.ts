import { toCloudEvent, type CloudEvent } from '../../events/envelope.ts'
import type { Recorded } from '../../events/event-log.ts'

/**
 * An event as anybody is shown it, the only way out of the log for its data. Hashes and digest are those of the whole
 * event: what is left out stays in the log for a successor.
 * @param source URI reference of the log, e.g. `/quipu/<logId>`
 */
export function shownCloudEvent(event: Recorded, source: string): CloudEvent {
  return { ...toCloudEvent(event, source), data: shownData(event) }
}

/**
 * Data of an event without what is for a successor alone: the fragments of a plan with what they read. Of events of any
 * version, so nothing is taken for granted.
 */
export function shownData({ type, data }: Pick<Recorded, 'type' | 'data'>): unknown {
  if (type !== 'QueryPlanned' || !isRecord(data) || !Array.isArray(data['stages'])) return data
  return { ...data, stages: data['stages'].map(shownStage) }
}

function shownStage(stage: unknown): unknown {
  if (!isRecord(stage)) return {}
  const { fragment: _, withheld, splits, ...shown } = stage
  return {
    ...shown,
    ...(withheld === undefined ? {} : { withheld: without(withheld, 'target') }),
    ...(Array.isArray(splits) ? { splits: splits.map((split) => without(split, 'data')) } : {}),
  }
}

function without(value: unknown, name: string): unknown {
  if (!isRecord(value)) return {}
  const { [name]: _, ...rest } = value
  return rest
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
