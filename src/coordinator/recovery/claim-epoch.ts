import { request } from 'node:http'
import { z } from 'zod'
import type { Clock } from '../../shared/clock.ts'
import { ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'
import { Fenced, type EventLog } from '../../events/event-log.ts'
import { systemEventSchemas, systemStream } from '../system/events.ts'

export interface ClaimOptions {
  /** Address under which this coordinator is reached; it goes into EpochStarted. */
  readonly address: string
  readonly version: string
  /** Writer whose process is known to have ended. */
  readonly deadWriter: string | undefined
  readonly silentMs: number
  readonly jitterMs: number
  readonly clock: Clock
  /**
   * A sequence of the stream `system` below the last EpochStarted: there may be very many anchors before.
   * @default 0
   */
  readonly systemAfter?: number
}

export interface Claimed {
  readonly epoch: number
  readonly writer: string
}

const infoSchema = z.looseObject({ starting: z.boolean().optional() })

/**
 * Becomes the writer: at once on an empty log, after a writer seen to exit, or one whose
 * address nobody can hold but this process; else that writer is asked first. When to claim is liveness only: the log
 * fences whoever guesses wrong.
 * @throws ExitError 69 when another coordinator is alive
 */
export async function claimEpoch(log: EventLog, options: ClaimOptions): Promise<Claimed> {
  const last = await lastWriter(log, options.systemAfter ?? 0)
  if (last && last.writer !== options.deadWriter && last.address !== options.address) {
    const answer = await askInfo(last.address)
    if (answer === 'alive')
      throw new ExitError(
        exitCodes.dependency,
        `Another coordinator is writing this event log at ${last.address}: stop it first`,
      )
    if (answer === 'silent') await sleep(options.silentMs + Math.random() * options.jitterMs)
  }
  for (let attempt = 0; ; attempt++) {
    try {
      const epoch = await log.claim({ address: options.address, version: options.version })
      const tip = await log.tip()
      return { epoch, writer: tip.at[0]?.state.writer ?? '' }
    } catch (error) {
      // Somebody else claimed between the look and the claim: look again, once it has had time to answer.
      if (!(error instanceof Fenced) || attempt >= 2)
        throw error instanceof Fenced
          ? new ExitError(exitCodes.fenced, 'Another coordinator claimed the event log first')
          : error
      await sleep(200)
    }
  }
}

/** Who wrote the log last, and whether that one answers; undefined for a log nobody has claimed. */
export async function findWriter(
  log: EventLog,
  systemAfter: number,
): Promise<{ readonly address: string; readonly answers: 'alive' | 'gone' | 'silent' } | undefined> {
  const last = await lastWriter(log, systemAfter)
  return last && { address: last.address, answers: await askInfo(last.address) }
}

async function lastWriter(log: EventLog, after: number): Promise<{ writer: string; address: string } | undefined> {
  const tip = await log.tip()
  const writer = tip.at[0]?.state.writer ?? ''
  if (writer === '') return undefined
  let address = ''
  for await (const event of log.readStream(systemStream, after)) {
    if (event.type !== 'EpochStarted') continue
    const data = systemEventSchemas.EpochStarted.safeParse(event.data)
    if (data.success) address = data.data.address
  }
  return { writer, address }
}

/** `gone`: nobody listens there, so no supervisor holds the socket; `silent`: no answer says nothing. */
function askInfo(address: string): Promise<'alive' | 'gone' | 'silent'> {
  return new Promise((resolve) => {
    let url: URL
    try {
      url = new URL('/v1/info', address)
    } catch {
      return resolve('gone')
    }
    const asked = request(url, { timeout: 1000, agent: false }, (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('error', () => resolve('silent'))
      response.on('end', () => {
        try {
          infoSchema.parse(JSON.parse(Buffer.concat(parts).toString('utf8')))
          resolve('alive')
        } catch {
          resolve('silent')
        }
      })
    })
    asked.on('timeout', () => asked.destroy())
    asked.on('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code === 'ECONNREFUSED' && isLocal(url.hostname) ? 'gone' : 'silent'),
    )
    asked.end()
  })
}

function isLocal(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || hostname.startsWith('127.')
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
