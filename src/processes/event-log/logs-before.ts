import { systemEventData } from '../../coordinator/system/decode-event.ts'
import { systemStream, type SystemEvent } from '../../coordinator/system/events.ts'
import type { Archive } from '../../events/archive/archive.ts'
import { ArchivedHistory } from '../../events/archive/archived-history.ts'
import { ArchiveDamaged } from '../../events/archive/archived-records.ts'
import { beginning, type EventReader, type LogEnd } from '../../events/event-log.ts'

type Continued = Extract<SystemEvent, { type: 'LogContinued' }>['data']

/** It is among the first events, or a claim that came to nothing is before it. */
const FIRST_EVENTS = 50

/** What a log says of the one that it goes on from; undefined: it is the first. @throws LogUnavailable */
export async function continuedFrom(log: EventReader & LogEnd): Promise<Continued | undefined> {
  const { events } = await log.read(beginning((await log.tip()).at.length), FIRST_EVENTS)
  const told = events.find(({ stream, type }) => stream === systemStream && type === 'LogContinued')
  return told && systemEventData('LogContinued', told.v, told.data)
}

/**
 * The logs that one goes on from, which lie in their archives, the first of them first.
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
      `The archive at ${archive.folder} does not end with anchor ${continued.anchor}, as the log says that goes on from it`,
    )
  const before = new ArchivedHistory(archive, last)
  return [...(await logsBefore(before, archiveOf)), before]
}
