import type { StreamReader } from '../../events/event-log.ts'
import { systemStream } from '../system/events.ts'
import type { HttpClient } from '../../shared/http-client.ts'
import { nextPlace, type WriterPlace } from './epoch-follower.ts'
import { askInfo, type Answer } from './turn.ts'

/**
 * Who wrote the log last, and whether that one answers; undefined for a log nobody has claimed.
 * @param systemAfter a sequence of the stream `system` before the last EpochStarted
 */
export async function findWriter(
  log: StreamReader,
  systemAfter: number,
  http: HttpClient,
): Promise<{ readonly address: string; readonly answers: Answer } | undefined> {
  let place: WriterPlace | undefined
  for await (const event of log.readStream(systemStream, systemAfter)) place = nextPlace(place, event)
  return place && { address: place.address, answers: place.ended ? 'gone' : await askInfo(http, place) }
}
