import type { RequestOptions } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { TLSSocket } from 'node:tls'
import { z } from 'zod'
import type { Clock } from '../../shared/clock.ts'
import type { HttpClient } from '../../shared/http-client.ts'
import { isLoopback } from '../../shared/loopback.ts'
import { requestOptionsOf } from '../../shared/request-options.ts'
import type { EpochFollower, WriterAddress } from './epoch-follower.ts'
import { hasCode } from '../../shared/node-error.ts'
import {
  gaveAnswer,
  beginPulse,
  begunAnew,
  isSilent,
  looked,
  LOOK_EVERY_MS,
  silenceLimit,
  silenceOf,
  wrote,
  type SilenceLimits,
} from './writer-pulse.ts'

export interface WriterLivenessOptions {
  readonly follower: Pick<EpochFollower, 'writerAddress' | 'epochAtEnd' | 'written'>
  /** The address of this process: a writer that had the same address is gone. */
  readonly ownAddress: string
  /** A writer whose process is known to have ended. */
  readonly deadWriter: string | undefined
  readonly silentMs: number
  readonly jitterMs: number
  readonly clock: Clock
  /** The longest delay of the event loop since the last call, milliseconds. */
  readonly lagMs: () => number
  /** `askInfo`, over HTTP, with the time that it may take. */
  readonly ask: (address: WriterAddress, waitMs: number) => Promise<Answer>
}

/**
 * `writes`: the server says that it is the writer; `gone`: this machine refuses the connection, so no supervisor holds
 * the socket; `silent`: no answer, or not that of a writer; `unverified`: a server answers whose certificate cannot be
 * verified here.
 */
export type Answer = 'writes' | 'gone' | 'silent' | 'unverified'

/** The result of a check of the writer: see `check`. */
export type ClaimCheck = 'claim' | 'writes' | 'waiting' | 'behind'

/**
 * Why the log could be claimed. `first`: the log was never claimed. `ended`: the writer handed it over. `exit`: the
 * writer's process is known to have ended. `silence`: the writer was silent for too long, and may still live.
 */
export type FreedBy = 'first' | 'ended' | 'exit' | 'silence'

/**
 * Decides whether this process may claim the log. This is liveness only: the log fences a process that guesses wrong.
 */
export interface WriterLiveness {
  /**
   * `claim`: there is no writer, and this process has read the whole log. `writes`: the writer answers. `waiting`: it
   * does not, but its time is not over. `behind`: this process has not read the log to its end.
   */
  check(): Promise<ClaimCheck>
  /** Why the last check returned `claim`. */
  freedBy(): FreedBy
  /** Milliseconds since the writer was last heard of, without the time in which this process itself stood still. */
  silentMs(): number
  /** Whether the writer was heard of recently enough that waiting for its answer makes sense. */
  writerLives(): boolean
}

/** A writer that was heard of within this time lives, on any machine. */
const LIVES_MS = 1_000
/** How long a change of writer counts. */
const CHANGES_COUNT_MS = 15 * 60_000

export function createWriterLiveness(options: WriterLivenessOptions): WriterLiveness {
  const { follower, clock, deadWriter, ownAddress, ask } = options
  let epoch: number | undefined
  let pulse = beginPulse(clock.monotonicMs())
  let jitterMs = 0
  let freedBy: FreedBy = 'first'
  let written = follower.written
  let unannounced: { readonly epoch: number; readonly since: number } | undefined
  let asking: { readonly epoch: number; readonly answer: Promise<Answer> } | undefined

  const limits = (): SilenceLimits => ({ silentMs: options.silentMs, jitterMs })

  function takeOvers(): number {
    const now = clock.now()
    return (follower.writerAddress?.takeOvers ?? []).filter((at) => now - at < CHANGES_COUNT_MS).length
  }

  function noticeTime(): void {
    pulse = looked(pulse, clock.monotonicMs(), options.lagMs())
    const current = follower.writerAddress?.epoch ?? 0
    if (epoch !== current) {
      epoch = current
      pulse = begunAnew(pulse)
      jitterMs = Math.random() * options.jitterMs
    }
    if (follower.written === written) return
    written = follower.written
    if (written?.epoch === current) pulse = wrote(pulse, clock.now() - written.at)
  }

  /** Only one question is under way at a time: a writer that is slow to answer is not asked again. */
  function startAsking(address: WriterAddress): Promise<Answer> {
    if (asking?.epoch === address.epoch) return asking.answer
    const askedAt = clock.monotonicMs()
    const waitMs = silenceLimit(pulse, limits(), takeOvers())
    const answer = ask(address, waitMs).then((said) => {
      if (asking !== mine) return 'silent'
      asking = undefined
      if (said === 'writes') pulse = gaveAnswer(pulse, clock.monotonicMs() - askedAt)
      return said
    })
    const mine = { epoch: address.epoch, answer }
    asking = mine
    return answer
  }

  async function free(address: WriterAddress | undefined): Promise<FreedBy | 'writes' | 'waiting'> {
    if (!address) return 'first'
    if (address.ended) return 'ended'
    if (address.writer === deadWriter || address.address === ownAddress) return 'exit'
    const late = new AbortController()
    const noAnswer = sleep(LOOK_EVERY_MS, 'silent' as const, { signal: late.signal }).catch(() => 'silent' as const)
    const answer = await Promise.race([startAsking(address), noAnswer])
    late.abort()
    // The question may have taken a while.
    noticeTime()
    if (answer === 'gone') return 'exit'
    // It may be the writer with a changed or expired certificate: this is no reason to take its place.
    if (answer === 'unverified') return 'waiting'
    if (answer === 'writes') return 'writes'
    return isSilent(pulse, limits(), takeOvers()) ? 'silence' : 'waiting'
  }

  return {
    async check() {
      noticeTime()
      const found = await free(follower.writerAddress)
      if (found === 'writes' || found === 'waiting') return found
      freedBy = found
      const known = follower.writerAddress?.epoch ?? 0
      const last = await follower.epochAtEnd()
      // After the last event read there may be another writer's epoch, and that writer has not been silent.
      if (last === undefined || (follower.writerAddress?.epoch ?? 0) !== known) return 'behind'
      if (last <= known) return 'claim'
      // Claimed by a process that has not recorded its address, and may have died before it could.
      if (unannounced?.epoch !== last) unannounced = { epoch: last, since: pulse.ownMs }
      freedBy = 'silence'
      return pulse.ownMs - unannounced.since > silenceLimit(pulse, limits(), takeOvers()) ? 'claim' : 'waiting'
    },
    freedBy: () => freedBy,
    silentMs: () => silenceOf(pulse),
    writerLives: () => silenceOf(pulse) < Math.max(LIVES_MS, silenceLimit(pulse, limits(), takeOvers()) / 2),
  }
}

const infoSchema = z.looseObject({ writer: z.boolean(), epoch: z.number() })

const ASK_TIMEOUT_MS = 1000

/** Asks the server at the writer's address whether it writes in that epoch. */
export function askInfo(http: HttpClient, address: WriterAddress, waitMs = ASK_TIMEOUT_MS): Promise<Answer> {
  return new Promise((resolve) => {
    let to: RequestOptions
    try {
      to = requestOptionsOf(address.address, '/v1/info')
    } catch {
      return resolve('gone')
    }
    const asked = http.request(to, (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('error', () => resolve('silent'))
      response.on('end', () => resolve(writesIn(address.epoch, Buffer.concat(parts).toString('utf8'))))
    })
    // A deadline for the whole answer: a stopped process accepts connections, but does not answer.
    const timer = setTimeout(() => asked.destroy(), waitMs)
    asked.on('close', () => {
      clearTimeout(timer)
      resolve('silent')
    })
    asked.on('error', (error: Error) => {
      if (hasCode(error, 'ECONNREFUSED') && isLoopback(to.hostname ?? '')) return resolve('gone')
      // Node sets this after a completed handshake.
      const unverified = asked.socket instanceof TLSSocket && Boolean(asked.socket.authorizationError)
      resolve(unverified ? 'unverified' : 'silent')
    })
    asked.end()
  })
}

function writesIn(epoch: number, text: string): Answer {
  try {
    const info = infoSchema.parse(JSON.parse(text))
    return info.writer && info.epoch >= epoch ? 'writes' : 'silent'
  } catch {
    return 'silent'
  }
}
