import { endedBySchema } from './events.ts'
import { toCloudEvent, type CloudEvent } from '../../events/envelope.ts'
import type { Recorded } from '../../events/event-log.ts'
import type { SeesEnder } from './ending.ts'

/**
 * An event as anybody is shown it, the only way out of the log for its data. Hashes and digest are those of the whole
 * event: what is left out stays in the log for a successor.
 * @param source URI reference of the log, e.g. `/quipu/<logId>`
 */
export function shownCloudEvent(event: Recorded, source: string, seesEnder: SeesEnder): CloudEvent {
  return { ...toCloudEvent(event, source), data: shownData(event, seesEnder) }
}

/**
 * Data of an event without what is for a successor alone, the fragments of a plan with what they read, without
 * digests of what results and written files hold (of a short one it can be guessed), without who ended a query where that is not for who looks, and without texts of rules, which say what
 * is hidden from whom. Of events of any version, so nothing is taken for granted.
 */
export function shownData({ type, data }: Pick<Recorded, 'type' | 'data'>, seesEnder: SeesEnder): unknown {
  if (!isRecord(data)) return data
  if (type === 'QueryPlanned' && Array.isArray(data['stages']))
    return { ...data, stages: data['stages'].map(shownStage) }
  if (type === 'FileKept') return without(data, 'text')
  if (type === 'QueryFinished') return without(data, 'digest')
  if (type === 'ResultPagesPublished' && Array.isArray(data['pages']))
    return { ...data, pages: data['pages'].map((page) => without(without(page, 'digest'), 'sha256')) }
  if (type === 'WritePrepared' && isRecord(data['prepared']))
    return { ...data, prepared: { ...data['prepared'], ...shownFiles(data['prepared']['files']) } }
  if (type !== 'QueryFailed' || data['endedBy'] === undefined) return data
  const endedBy = endedBySchema.safeParse(data['endedBy'])
  return endedBy.success && seesEnder(endedBy.data) ? data : without(data, 'endedBy')
}

function shownFiles(files: unknown): { readonly files?: readonly unknown[] } {
  return Array.isArray(files) ? { files: files.map((file) => without(without(file, 'footer'), 'sha256')) } : {}
}

function shownStage(stage: unknown): unknown {
  if (!isRecord(stage)) return {}
  const { fragment: _, withheld, splits, ...shown } = stage
  return {
    ...shown,
    ...(withheld === undefined ? {} : { withheld: without(withheld, 'target') }),
    ...(Array.isArray(splits) ? { splits: splits.map((split) => without(without(split, 'data'), 'columnBytes')) } : {}),
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
