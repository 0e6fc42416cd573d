import type { Clock } from '../../shared/clock.ts'
import type { Appended, EventAppender } from '../../events/event-log.ts'
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
