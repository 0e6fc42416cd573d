import { createHmac, timingSafeEqual } from 'node:crypto'

/**
 * The last segment of a nextUri: `{n}.{mac}`. n counts result pages; mac is 128 bits of HMAC-SHA256 over the query id
 * and n, the only lock on a result. A stage's mac locks `partialCancelUri` the same way.
 */
export interface StatementUris {
  nextUri(base: string, queryId: string, token: number): string
  partialCancelUri(base: string, queryId: string, stage: number): string
  infoUri(base: string, queryId: string): string
  /** The token of a path segment, or undefined when its form or its mac is wrong. */
  verifyToken(queryId: string, segment: string): number | undefined
  verifyStage(queryId: string, stage: number, mac: string): boolean
}

export function createStatementUris(key: Buffer): StatementUris {
  const mac = (text: string): string =>
    createHmac('sha256', key).update(text).digest().subarray(0, 16).toString('base64url')
  const equal = (a: string, b: string): boolean =>
    a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))
  return {
    nextUri: (base, queryId, token) => `${base}/v1/statement/${queryId}/${token}.${mac(`${queryId}/${token}`)}`,
    partialCancelUri: (base, queryId, stage) =>
      `${base}/v1/stage/${queryId}.${stage}/${mac(`${queryId}/stage/${stage}`)}`,
    infoUri: (base, queryId) => `${base}/v1/query/${queryId}`,
    verifyToken(queryId, segment) {
      const dot = segment.indexOf('.')
      const number = segment.slice(0, dot)
      if (dot < 1 || !/^\d{1,9}$/.test(number)) return undefined
      const token = Number(number)
      return equal(segment.slice(dot + 1), mac(`${queryId}/${token}`)) ? token : undefined
    },
    verifyStage: (queryId, stage, given) => equal(given, mac(`${queryId}/stage/${stage}`)),
  }
}
