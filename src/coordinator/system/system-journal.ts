import type { Clock } from '../../shared/clock.ts'
import type { Appended, EventAppender } from '../../events/event-log.ts'
import {
  systemEventSchemas,
  systemEventVersions,
  systemStream,
  type SystemEvent,
  type SystemEventType,
} from './events.ts'

/** Writes events about the whole system. */
export interface SystemJournal {
  /**
   * Resolves when the event is valid; rejects as an append does.
   * @throws ZodError when the data does not fit the type's schema
   */
  record<T extends SystemEventType>(
    type: T,
    data: Extract<SystemEvent, { type: T }>['data'],
    traceparent?: string,
  ): Promise<Appended>
  /** Resolves when no append is under way. */
  settled(): Promise<void>
}

/**
 * Makes the appends one after the other: apart from the claim before it, this journal is the only author of the stream
 * in this process.
 */
export function createSystemJournal(log: EventAppender, clock: Clock): SystemJournal {
  let last: Promise<unknown> = Promise.resolve()

  function append(type: SystemEventType, data: unknown, traceparent: string | undefined): Promise<Appended> {
    const time = new Date(clock.now()).toISOString()
    const event = {
      type,
      v: systemEventVersions[type],
      time,
      data,
      ...(traceparent === undefined ? {} : { traceparent }),
    }
    return log.append(systemStream, 'end', [event])
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
