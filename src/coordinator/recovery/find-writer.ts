import type { StreamReader } from '../../events/event-log.ts'
import { systemStream } from '../system/events.ts'
import type { HttpClient } from '../../shared/http-client.ts'
import { nextAddress, type WriterAddress } from './epoch-follower.ts'
import { askInfo, type Answer } from './writer-liveness.ts'

/**
 * The coordinator that wrote the log last, and whether it answers; undefined for a log without a claim.
 * @param systemAfter a sequence of the stream `system` before the last EpochStarted
 */
export async function findWriter(
  log: StreamReader,
  systemAfter: number,
  http: HttpClient,
): Promise<{ readonly address: string; readonly answers: Answer } | undefined> {
  let address: WriterAddress | undefined
  for await (const event of log.readStream(systemStream, systemAfter)) address = nextAddress(address, event)
  return address && { address: address.address, answers: address.ended ? 'gone' : await askInfo(http, address) }
}
