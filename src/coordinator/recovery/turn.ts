import type { RequestOptions } from 'node:http'
import { TLSSocket } from 'node:tls'
import { z } from 'zod'
import type { Clock } from '../../shared/clock.ts'
import type { HttpClient } from '../../shared/http-client.ts'
import { isLoopback } from '../../shared/loopback.ts'
import { requestOptionsOf } from '../../shared/request-options.ts'
import type { EpochFollower, WriterPlace } from './epoch-follower.ts'
import { hasCode } from '../../shared/node-error.ts'

export interface TurnOptions {
  readonly follower: Pick<EpochFollower, 'place' | 'epochAtEnd'>
  /** Address of this process: whoever wrote from there is gone. */
  readonly ownAddress: string
  /** Writer whose process is known to have ended. */
  readonly deadWriter: string | undefined
  readonly silentMs: number
  readonly jitterMs: number
  readonly clock: Clock
  /** `askInfo`, over HTTP. */
  readonly ask: (place: WriterPlace) => Promise<Answer>
}

/**
 * `writes`: it says that it is the writer; `gone`: nobody listens there, so no supervisor holds the socket; `silent`: no
 * answer, or not that of a writer; `unverified`: a server lives there, whose certificate nobody here vouches for.
 */
export type Answer = 'writes' | 'gone' | 'silent' | 'unverified'

/** What a look says: see `Turn`. */
export type Look = 'claim' | 'writes' | 'waiting' | 'behind'

/** Whether this process may claim the log. It is liveness only: the log fences whoever guesses wrong. */
export interface Turn {
  /**
   * `claim`: nobody writes, and this process has read all there is. `writes`: the writer answers. `waiting`: it does not,
   * yet its time is not over. `behind`: this process has not read the log to its end.
   */
  look(): Promise<Look>
  /** Milliseconds since the writer was last heard of, time in which this process itself stood still taken out. */
  silentMs(): number
}

/** Between two looks, milliseconds. */
export const LOOK_EVERY_MS = 200
const ASK_TIMEOUT_MS = 1000
/** A look takes no longer; what is beyond was this process's own pause. */
const LONGEST_LOOK_MS = ASK_TIMEOUT_MS + LOOK_EVERY_MS + 500

export function createTurn(options: TurnOptions): Turn {
  const { follower, clock, deadWriter, ownAddress, ask } = options
  let epoch: number | undefined
  let heardAt = clock.monotonicMs()
  let lookedAt = heardAt
  let limitMs = options.silentMs
  let unannounced: { readonly epoch: number; readonly since: number } | undefined

  function noticeTime(): void {
    const now = clock.monotonicMs()
    // While this process was stopped it could hear nobody: that silence is its own.
    if (now - lookedAt > LONGEST_LOOK_MS) heardAt += now - lookedAt
    lookedAt = now
    const current = follower.place?.epoch ?? 0
    if (epoch === current) return
    epoch = current
    heardAt = now
    limitMs = options.silentMs + Math.random() * options.jitterMs
  }

  async function free(place: WriterPlace | undefined): Promise<'free' | 'writes' | 'waiting'> {
    if (!place || place.ended || place.writer === deadWriter || place.address === ownAddress) return 'free'
    const answer = await ask(place)
    if (answer === 'gone') return 'free'
    // It may be the writer, whose certificate was changed or has ended: for that no other takes its place.
    if (answer === 'unverified') return 'waiting'
    if (answer === 'writes') {
      heardAt = clock.monotonicMs()
      return 'writes'
    }
    return clock.monotonicMs() - heardAt > limitMs ? 'free' : 'waiting'
  }

  return {
    async look() {
      noticeTime()
      const found = await free(follower.place)
      if (found !== 'free') return found
      const known = follower.place?.epoch ?? 0
      const last = await follower.epochAtEnd()
      // Behind the log's end there may be another writer's epoch, which has not been silent at all.
      if (last === undefined || (follower.place?.epoch ?? 0) !== known) return 'behind'
      if (last <= known) return 'claim'
      // Claimed by somebody who has not told its address, and may have died before it could.
      if (unannounced?.epoch !== last) unannounced = { epoch: last, since: clock.monotonicMs() }
      return clock.monotonicMs() - unannounced.since > limitMs ? 'claim' : 'waiting'
    },
    silentMs: () => clock.monotonicMs() - heardAt,
  }
}

const infoSchema = z.looseObject({ writer: z.boolean(), epoch: z.number() })

/** Asks whoever listens at the writer's address whether it writes in that epoch. */
export function askInfo(http: HttpClient, place: WriterPlace): Promise<Answer> {
  return new Promise((resolve) => {
    let to: RequestOptions
    try {
      to = requestOptionsOf(place.address, '/v1/info')
    } catch {
      return resolve('gone')
    }
    const asked = http.request(to, (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('error', () => resolve('silent'))
      response.on('end', () => resolve(writesIn(place.epoch, Buffer.concat(parts).toString('utf8'))))
    })
    // A deadline for the whole answer: a stopped process accepts connections and says nothing.
    const timer = setTimeout(() => asked.destroy(), ASK_TIMEOUT_MS)
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
