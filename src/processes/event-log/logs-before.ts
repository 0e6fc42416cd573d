import { systemEventData } from '../../coordinator/system/decode-event.ts'
import { systemStream, VISITOR_ADDRESS, type SystemEvent } from '../../coordinator/system/events.ts'
import type { Archive } from '../../events/archive/archive.ts'
import { ArchivedHistory } from '../../events/archive/archived-history.ts'
import { ArchiveDamaged } from '../../events/archive/archived-records.ts'
import {
  beginning,
  LogUnavailable,
  MisconfiguredLog,
  type Checkpoint,
  type EventReader,
  type LogBeginning,
  type LogEnd,
  type Recorded,
} from '../../events/event-log.ts'

type Continued = Extract<SystemEvent, { type: 'LogContinued' }>['data']

/** The event is among the first ones; claims of interrupted calls may come before it. */
const FIRST_EVENTS = 50

/** The record in a log about the log that it continues; undefined if it is the first. @throws LogUnavailable */
export async function continuedFrom(log: EventReader & LogEnd): Promise<Continued | undefined> {
  const { events } = await log.read(beginning((await log.tip()).at.length), FIRST_EVENTS)
  const continuedEvent = events.find(({ stream, type }) => stream === systemStream && type === 'LogContinued')
  return continuedEvent && systemEventData('LogContinued', continuedEvent.v, continuedEvent.data)
}

/**
 * Refuses a topic that `quipu continue` has claimed but not yet begun: other records there would be in its way.
 * @throws MisconfiguredLog
 */
export async function refuseHalfContinued(log: EventReader & LogBeginning): Promise<void> {
  const start = await log.start()
  if (start.at.some(({ offset }) => offset > 0n)) return
  // In a first epoch nothing more is read: events may be encrypted, and their keys may be away.
  const { events: first } = await log.read(start, 1)
  if (first.every(({ epoch }) => epoch === 1)) return
  const events = (await firstEvents(log, start)) ?? []
  if (events.length === 0 || !events.every(isVisit)) return
  throw new MisconfiguredLog('quipu continue began the topic and was interrupted: run it again')
}

/** The first events; undefined if they wait for keys. A topic with queries has begun already. */
async function firstEvents(log: EventReader, start: Checkpoint): Promise<readonly Recorded[] | undefined> {
  try {
    return (await log.read(start, FIRST_EVENTS)).events
  } catch (error) {
    if (error instanceof LogUnavailable) return undefined
    throw error
  }
}

/** Whether an event is the claim of a command. */
export function isVisit({ type, data }: Pick<Recorded, 'type' | 'data'>): boolean {
  return type === 'EpochStarted' && (data as { address?: unknown } | null)?.address === VISITOR_ADDRESS
}

/**
 * The logs that a log continues, read from their archives, oldest first.
 * @throws ArchiveDamaged when an archive does not end where it says | LogUnavailable
 */
export async function logsBefore(
  log: EventReader & LogEnd,
  archiveOf: (logId: string) => Archive,
): Promise<readonly (EventReader & LogEnd)[]> {
  const continued = await continuedFrom(log)
  if (!continued) return []
  const archive = archiveOf(continued.logId)
  const last = (await archive.reread())[continued.periods - 1]
  if (last?.anchor.number !== continued.anchor)
    throw new ArchiveDamaged(
      `The archive at ${archive.folder} does not end with anchor ${continued.anchor}, from which the current log continues`,
    )
  const before = new ArchivedHistory(archive, last)
  return [...(await logsBefore(before, archiveOf)), before]
}
