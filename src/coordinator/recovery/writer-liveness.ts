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
  /** Address of this process: whoever wrote from there is gone. */
  readonly ownAddress: string
  /** Writer whose process is known to have ended. */
  readonly deadWriter: string | undefined
  readonly silentMs: number
  readonly jitterMs: number
  readonly clock: Clock
  /** How late the event loop ran at most since it was asked last, milliseconds. */
  readonly lagMs: () => number
  /** `askInfo`, over HTTP. It may take the given time. */
  readonly ask: (address: WriterAddress, waitMs: number) => Promise<Answer>
}

/**
 * `writes`: it says that it is the writer; `gone`: nobody listens there, so no supervisor holds the socket; `silent`: no
 * answer, or not that of a writer; `unverified`: a server lives there, whose certificate nobody here vouches for.
 */
export type Answer = 'writes' | 'gone' | 'silent' | 'unverified'

/** What a look says: see `Turn`. */
export type ClaimCheck = 'claim' | 'writes' | 'waiting' | 'behind'

/**
 * Why the log could be claimed. `first`: nobody ever wrote. `ended`: the writer handed it over. `exit`: the writer's process
 * is known to have ended. `silence`: the writer said nothing for too long, and may live.
 */
export type FreedBy = 'first' | 'ended' | 'exit' | 'silence'

/** Whether this process may claim the log. It is liveness only: the log fences whoever guesses wrong. */
export interface WriterLiveness {
  /**
   * `claim`: nobody writes, and this process has read all there is. `writes`: the writer answers. `waiting`: it does not,
   * yet its time is not over. `behind`: this process has not read the log to its end.
   */
  check(): Promise<ClaimCheck>
  /** Why the last look said `claim`. */
  freedBy(): FreedBy
  /** Milliseconds since the writer was last heard of, time in which this process itself stood still taken out. */
  silentMs(): number
  /** It was heard of lately enough that an answer of it is worth waiting for. */
  writerLives(): boolean
}

/** A writer that was heard of within this lives, on whatever machine. */
const LIVES_MS = 1_000
/** Changes of writer count for so long. */
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

  /** One question is under way at a time: a writer that is slow to answer is not asked anew for that. */
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
    // It may be the writer, whose certificate was changed or has ended: for that no other takes its place.
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
      // Behind the log's end there may be another writer's epoch, which has not been silent at all.
      if (last === undefined || (follower.writerAddress?.epoch ?? 0) !== known) return 'behind'
      if (last <= known) return 'claim'
      // Claimed by somebody who has not told its address, and may have died before it could.
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

/** Asks whoever listens at the writer's address whether it writes in that epoch. */
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
    // A deadline for the whole answer: a stopped process accepts connections and says nothing.
    const timer = setTimeout(() => asked.destroy(), waitMs)
    asked.on('close', () => {
      clearTimeout(timer)
      resolve('silent')
    })
    asked.on('error', (error: Error) => {
      if (hasCode(error, 'ECONNREFUSED') && isLoopback(to.hostname ?? '')) return resolve('gone')
      // Node says so of a handshake that came to its end.
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
