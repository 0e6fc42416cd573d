import type { Config } from '../../config/load-config.ts'
import { findWriter } from '../../coordinator/recovery/find-writer.ts'
import { VISITOR_ADDRESS } from '../../coordinator/system/events.ts'
import { createSystemJournal, type SystemJournal } from '../../coordinator/system/system-journal.ts'
import { Fenced, type StreamReader, type EventAppender, type WriterClaim } from '../../events/event-log.ts'
import { beforeLastEpoch } from '../../readmodels/audit/queries.ts'
import { internalBearer, loadClusterSecret } from '../../security/cluster-secret.ts'
import { systemClock } from '../../shared/clock.ts'
import { ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'
import { askServer, createHttpClient, type ServerAnswer } from '../../shared/http-client.ts'
import { createServerTrust } from '../../shared/server-trust.ts'
import { version } from '../../shared/version.ts'

/** Sends a request to the coordinator that writes the log. */
export type SendToWriter = (path: string, body: unknown, method?: 'PUT' | 'GET') => Promise<ServerAnswer>

export interface WriterWork<T> {
  /** Asks the coordinator that writes the log to do the work. */
  readonly ask: (send: SendToWriter) => Promise<T>
  /** Called before this process claims the log. A claim stops a command that writes; an error of this call prevents the claim. */
  readonly beforeClaim?: () => Promise<void>
  /** Used if no coordinator runs: this process writes the log for a moment. */
  readonly write: (journal: SystemJournal, epoch: number) => Promise<T>
}

/** The log of a command, opened, and its settings. */
interface CommandLog {
  readonly log: StreamReader & EventAppender & WriterClaim
  readonly config: Config
  readonly databaseUrl: string
}

const ANSWER_TIMEOUT_MS = 60_000

/**
 * Lets the process that may write the log do something: the running coordinator, else this process.
 * @throws ExitError 69 when the coordinator cannot be asked: it may be alive, and must not be fenced for this
 */
export async function withWriter<T>(parts: CommandLog, work: WriterWork<T>): Promise<T> {
  const { log } = parts
  const send = await sendToWriter(parts)
  if (send) return work.ask(send)
  await work.beforeClaim?.()
  let epoch
  try {
    epoch = await log.claim({ address: VISITOR_ADDRESS, version })
  } catch (error) {
    if (error instanceof Fenced) throw new ExitError(exitCodes.dependency, 'A coordinator is starting: try again')
    throw error
  }
  return work.write(createSystemJournal(log, systemClock), epoch)
}

/**
 * Finds the coordinator that writes the log.
 * @returns undefined if none runs
 * @throws ExitError 69 when it does not answer, or its certificate cannot be verified
 */
export async function sendToWriter({ log, config, databaseUrl }: CommandLog): Promise<SendToWriter | undefined> {
  const http = createHttpClient(createServerTrust(config), { keepAlive: false })
  const last = await findWriter(log, await beforeLastEpoch({ connectionString: databaseUrl }), http)
  if (last?.answers === 'unverified')
    throw new ExitError(
      exitCodes.dependency,
      `The certificate of the coordinator at ${last.address} cannot be verified: set tlsCaFile`,
    )
  if (last?.answers === 'silent')
    throw new ExitError(
      exitCodes.dependency,
      `The coordinator at ${last.address} was the last writer of the event log and does not answer: start it again`,
    )
  if (last?.answers !== 'writes') return undefined
  const bearer = internalBearer(loadClusterSecret(config.dataDir, config.sharedSecret))
  return (path, body, method) =>
    askServer(http, last.address, path, {
      method: method ?? 'POST',
      headers: {
        authorization: `Bearer ${bearer}`,
        accept: 'application/json',
        'content-type': 'application/json',
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    })
}
