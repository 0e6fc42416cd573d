import type { Clock } from '../../shared/clock.ts'
import { SequenceConflict, type Appended, type EventAppender } from '../../events/event-log.ts'
import {
  systemEventSchemas,
  systemEventVersions,
  systemStream,
  type SystemEvent,
  type SystemEventType,
} from './events.ts'

/** Writes facts about the whole system. */
export interface SystemJournal {
  /**
   * Resolves when the fact is valid; rejects as an append does.
   * @throws ZodError when the data is not what the type promises
   */
  record<T extends SystemEventType>(
    type: T,
    data: Extract<SystemEvent, { type: T }>['data'],
    traceparent?: string,
  ): Promise<Appended>
  /** When nothing is on its way any more. */
  settled(): Promise<void>
}

/** One append after the other: the stream has one author in this process, but for the claim before it. */
export function createSystemJournal(log: EventAppender, clock: Clock): SystemJournal {
  let sequence = 0
  let last: Promise<unknown> = Promise.resolve()

  async function append(type: SystemEventType, data: unknown, traceparent: string | undefined): Promise<Appended> {
    const time = new Date(clock.now()).toISOString()
    for (;;) {
      try {
        const v = systemEventVersions[type]
        const event = { type, v, time, data, ...(traceparent === undefined ? {} : { traceparent }) }
        const appended = await log.append(systemStream, sequence, [event])
        sequence++
        return appended
      } catch (error) {
        if (!(error instanceof SequenceConflict)) throw error
        sequence = error.actual
      }
    }
  }

  return {
    async record(type, data, traceparent) {
      const checked = systemEventSchemas[type].parse(data)
      const appended = last.then(() => append(type, checked, traceparent))
      last = appended.catch(() => {})
      return appended
    },
    async settled() {
      await last
    },
  }
}
