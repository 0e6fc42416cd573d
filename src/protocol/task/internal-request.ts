import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { internalHeaders } from '../../execution/api/task.ts'
import { HttpProblem } from '../edge/problem.ts'

/** Whether `Authorization: Bearer …` carries the cluster's key; compared in constant time. */
export function isAuthorized(request: IncomingMessage, bearer: string): boolean {
  const given = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1]
  return given !== undefined && timingSafeEqual(digest(given), digest(bearer))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** The longest wait that `X-Engine-Max-Wait` can ask for. */
const LONGEST_WAIT_MS = 60_000

/**
 * `X-Engine-Max-Wait` in milliseconds: `1s`, `500ms`, `1.5s`, `2m`.
 * @throws HttpProblem 400 when it is no duration
 */
export function maxWaitMs(request: IncomingMessage, otherwise: number): number {
  const text = request.headers[internalHeaders.maxWait]
  if (text === undefined) return otherwise
  const match = /^(\d+(?:\.\d+)?)(ns|us|ms|s|m)$/.exec(String(text).trim())
  if (!match) throw new HttpProblem(400, `The header ${internalHeaders.maxWait} must be a duration`)
  const unit = { ns: 1e-6, us: 1e-3, ms: 1, s: 1000, m: 60_000 }[match[2] as 'ns' | 'us' | 'ms' | 's' | 'm']
  return Math.min(Number(match[1]) * unit, LONGEST_WAIT_MS)
}

/** Parses the number of a page. @throws HttpProblem 400 when it is none */
export function parsePageToken(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new HttpProblem(400, `Not a page token: ${text.slice(0, 40)}`)
  return Number(text)
}

/** The refusal of a caller without the cluster's key. */
export function keyNeeded(): HttpProblem {
  return new HttpProblem(401, 'The internal interface needs the cluster secret', { 'www-authenticate': 'Bearer' })
}
