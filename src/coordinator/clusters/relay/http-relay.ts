import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { readHeaderText, trinoHeaderText } from '../../../shared/header-text.ts'
import { parseJson } from '../../../shared/parse-json.ts'
import type { ResponseHeader } from '../../query/session/session-headers.ts'
import type { HoldBytes } from './counted-bytes.ts'
import { createClusterRequests, type ClusterRequest, type ClusterResponse } from './cluster-requests.ts'
import { nonsense, readRemoteAnswer, remoteUri } from './remote-answer.ts'
import { remoteFigures } from './remote-figures.ts'
import {
  ClusterLost,
  type RelayPort,
  type RelayTarget,
  type RemoteAnswer,
  type RemoteStatement,
  type RemoteUri,
} from './relay-port.ts'

export interface HttpRelayOptions {
  /**
   * How long a request is repeated while the cluster does not answer, milliseconds.
   * @default 15_000
   */
  readonly clusterLostMs?: number
  /**
   * How long a healthy cluster waits for news before it answers a request, milliseconds.
   * @default 1_000, as in Trino
   */
  readonly maxWaitMs?: number
  /**
   * How much later than `maxWaitMs` an answer may come, and how long it may pause while it is read, milliseconds.
   * @default 10_000
   */
  readonly graceMs?: number
  /** Called with the outcome of each request, for the health of the cluster. */
  readonly onOutcome?: (cluster: string, error: ClusterLost | undefined) => void
}

/** Pauses between two tries, milliseconds. */
const PAUSE = { first: 50, longest: 2_000 } as const
/** The longest time that a cluster may ask to wait, milliseconds. */
const LONGEST_RETRY_AFTER_MS = 2_000
/** The most bytes of an answer that is read whole. Trino's have some kilobytes. */
const MOST_WHOLE_BYTES = 1024 * 1024
/** The most bytes of the body of a refusal, and the most characters of it that a message has. */
const REFUSAL = { bytes: 64 * 1024, characters: 300 } as const

/** The relay over HTTP and TLS. */
export function createHttpRelay(options: HttpRelayOptions = {}): RelayPort & { close(): void } {
  const { clusterLostMs = 15_000, maxWaitMs = 1_000, graceMs = 10_000 } = options
  const deadlineMs = maxWaitMs + graceMs
  const requests = createClusterRequests(graceMs)

  /** Awaits work at a cluster, and reports its outcome for the health of the cluster. */
  async function reported<T>({ name }: RelayTarget, work: Promise<T>): Promise<T> {
    try {
      const result = await work
      options.onOutcome?.(name, undefined)
      return result
    } catch (error) {
      // An answer about an unknown query is the answer of a healthy cluster.
      const answers = error instanceof ClusterLost && (error.reason === 'gone' || error.reason === 'passed')
      if (answers) options.onOutcome?.(name, undefined)
      else if (error instanceof ClusterLost) options.onOutcome?.(name, error)
      throw error
    }
  }

  const send = (cluster: RelayTarget, request: Omit<ClusterRequest, 'deadlineMs'>, signal?: AbortSignal) =>
    requests.send(cluster, { deadlineMs, ...request }, signal)

  async function fetchOnce(
    cluster: RelayTarget,
    uri: RemoteUri,
    signal: AbortSignal,
    hold: HoldBytes | undefined,
  ): Promise<RemoteAnswer> {
    const response = await send(cluster, { method: 'GET', target: uri }, signal)
    await checkAnswer(cluster, response)
    return readRemoteAnswer({
      cluster: cluster.name,
      chunks: response.chunks,
      close: () => response.close(),
      headers: sessionChanges(response.message.rawHeaders),
      isId: (id) => uri.split(/[/?]/).includes(id),
      hold,
    })
  }

  async function postOnce(cluster: RelayTarget, statement: RemoteStatement, signal: AbortSignal) {
    const { sql, user, headers } = statement
    const asUser = user === undefined ? await someUser(cluster) : { 'x-trino-user': trinoHeaderText(user) }
    const sent = { ...sessionHeaders(headers), ...asUser, 'content-type': 'text/plain' }
    const response = await send(
      cluster,
      { method: 'POST', target: '/v1/statement', headers: sent, body: Buffer.from(sql) },
      signal,
    )
    await checkAnswer(cluster, response)
    const posted = postedSchema.safeParse(parseJson(await wholeText(cluster, response, MOST_WHOLE_BYTES)))
    if (!posted.success) throw nonsense(cluster.name, 'its answer to a statement is no result')
    const { id, nextUri, error } = posted.data
    // While a server starts, it answers 200 with an error and without an address.
    if (nextUri === undefined)
      throw new ClusterLost(cluster.name, 'refused', error ? `${error.errorName}: ${error.message}` : 'no nextUri')
    return { remoteId: id, uri: remoteUri(cluster.name, nextUri, id) }
  }

  /** Sends one request to cancel. A query that the cluster does not know counts as canceled. */
  async function cancelOnce(cluster: RelayTarget, uri: RemoteUri): Promise<void> {
    const response = await send(cluster, { method: 'DELETE', target: uri })
    if (response.status !== 404 && response.status !== 410) await checkAnswer(cluster, response, isNoContent)
    else await drain(cluster, response)
  }

  return {
    post: (cluster, statement, signal) => reported(cluster, postOnce(cluster, statement, signal)),

    fetch: (cluster, uri, signal, hold) =>
      untilLost(clusterLostMs, signal, () => reported(cluster, fetchOnce(cluster, uri, signal, hold))),

    keepAlive: (cluster, uri) =>
      reported(
        cluster,
        send(cluster, { method: 'HEAD', target: uri }).then(async (response) => {
          if (response.status !== 404 && response.status !== 410) await checkAnswer(cluster, response, isOk)
          await drain(cluster, response)
          return response.status === 200 ? 'alive' : 'unknown'
        }),
      ),

    cancel: (cluster, uri) =>
      untilLost(Math.max(clusterLostMs, cluster.clientTimeoutMs), undefined, () =>
        reported(cluster, cancelOnce(cluster, uri)),
      ),

    figures: (cluster, remoteId) =>
      reported(
        cluster,
        (async () => {
          // `pruned` asks for an answer without stages and operators, which have several megabytes for a large plan.
          // Not every version knows it, so a larger answer is no failure: these figures are then missing.
          const target = `/v1/query/${encodeURIComponent(remoteId)}?pruned=true`
          const response = await send(cluster, { method: 'GET', target, headers: await someUser(cluster) })
          if ([403, 404, 410].includes(response.status)) {
            await drain(cluster, response)
            return undefined
          }
          await checkAnswer(cluster, response)
          const text = await textWithin(response, MOST_WHOLE_BYTES)
          return text === undefined ? undefined : remoteFigures(parseJson(text))
        })(),
      ),

    close: () => requests.close(),
  }
}

const postedSchema = z.object({
  id: z.string().regex(/^[\w-]{1,128}$/),
  nextUri: z.string().optional(),
  error: z.object({ errorName: z.string(), message: z.string().nullish() }).nullish(),
})

/**
 * Repeats the attempt while its failure is temporary, with growing pauses, until the first failure is `lostMs` ago.
 * @throws the last failure, or the reason of the signal
 */
async function untilLost<T>(lostMs: number, signal: AbortSignal | undefined, attempt: () => Promise<T>): Promise<T> {
  let failingSince: number | undefined
  for (let pause: number = PAUSE.first; ; pause = Math.min(2 * pause, PAUSE.longest)) {
    const began = performance.now()
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof ClusterLost) || error.retry !== 'later') throw error
      failingSince ??= began
      const waitMs = Math.max(pause, error.retryAfterMs ?? 0)
      if (performance.now() + waitMs - failingSince > lostMs) throw error
      await sleep(waitMs, undefined, signal && { signal }).catch(() => signal?.throwIfAborted())
    }
  }
}

const isOk = (status: number): boolean => status === 200
const isNoContent = (status: number): boolean => status === 200 || status === 202 || status === 204

/**
 * Checks the status of an answer. Without `accepts` the answer must be JSON with status 200, and its body is left to
 * the caller. Reads the body of every other answer.
 * @throws ClusterLost
 */
async function checkAnswer(
  cluster: RelayTarget,
  response: ClusterResponse,
  accepts?: (status: number) => boolean,
): Promise<void> {
  const { status, message } = response
  const { name } = cluster
  if (accepts?.(status)) return drain(cluster, response)
  if (!accepts && isOk(status)) {
    const type = message.headers['content-type'] ?? 'no content type'
    const encoding = message.headers['content-encoding'] ?? 'identity'
    if (/^application\/json\b/i.test(type) && encoding === 'identity') return
    response.close()
    throw nonsense(name, `it answered with ${type}, ${encoding}`.slice(0, REFUSAL.characters))
  }
  const text = await wholeText(cluster, response, REFUSAL.bytes)
  if (status === 404) throw new ClusterLost(name, 'gone', 'it does not know the query')
  if (status === 410) throw new ClusterLost(name, 'passed', 'a later page was asked for')
  if (status === 429 || status >= 500)
    throw new ClusterLost(name, 'unreachable', `it answered with HTTP ${status}`, {
      retryAfterMs: retryAfterMs(message.headers['retry-after']),
    })
  if (status < 400) throw nonsense(name, `it answered with HTTP ${status}`)
  const why = text.trim().slice(0, REFUSAL.characters)
  throw new ClusterLost(name, 'refused', `it answered with HTTP ${status}${why === '' ? '' : `: ${why}`}`)
}

/** Reads the body as text. @throws ClusterLost when it is longer */
async function wholeText({ name }: RelayTarget, response: ClusterResponse, mostBytes: number): Promise<string> {
  const text = await textWithin(response, mostBytes)
  if (text === undefined) throw nonsense(name, `it answered with more than ${mostBytes} bytes`)
  return text
}

/** Reads the body as text. @returns undefined when it is longer: then the connection is closed */
async function textWithin(response: ClusterResponse, mostBytes: number): Promise<string | undefined> {
  const parts: Buffer[] = []
  let bytes = 0
  for (;;) {
    const chunk = await response.chunks.next()
    if (chunk.done) return Buffer.concat(parts).toString('utf8')
    parts.push(chunk.value)
    bytes += chunk.value.length
    if (bytes <= mostBytes) continue
    response.close()
    return undefined
  }
}

/** Reads a body that nothing needs, so that its connection can be used again. */
async function drain(cluster: RelayTarget, response: ClusterResponse): Promise<void> {
  await wholeText(cluster, response, REFUSAL.bytes)
}

function retryAfterMs(header: string | undefined): number | undefined {
  const seconds = Number(header)
  return header !== undefined && seconds >= 0 ? Math.min(seconds * 1000, LONGEST_RETRY_AFTER_MS) : undefined
}

/**
 * The headers of a statement that go to the cluster. No other header of the client goes there: its credentials must
 * not, and Trino answers 406 to X-Forwarded-…. The rows must be inline: with spooled rows, clients would get addresses
 * that bypass this gateway.
 */
function sessionHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers)
      .map(([name, value]) => [name.toLowerCase(), trinoHeaderText(value)] as const)
      .filter(([name]) => (name.startsWith('x-trino-') && !KEPT_BACK.has(name)) || TRACE.has(name)),
  )
}

const KEPT_BACK = new Set(['x-trino-user', 'x-trino-query-data-encoding', 'x-trino-extra-credential'])
const TRACE = new Set(['traceparent', 'tracestate'])

/** The changes of the session in an answer's headers. */
function sessionChanges(rawHeaders: readonly string[]): readonly ResponseHeader[] {
  const found: ResponseHeader[] = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const header = SESSION_CHANGES.get(rawHeaders[index]!.toLowerCase())
    if (header !== undefined) found.push({ header, value: readHeaderText(rawHeaders[index + 1]!) })
  }
  return found
}

const SESSION_CHANGES: ReadonlyMap<string, string> = new Map(
  [
    'Set-Catalog',
    'Set-Schema',
    'Set-Path',
    'Set-Session',
    'Clear-Session',
    'Set-Role',
    'Added-Prepare',
    'Deallocated-Prepare',
    'Started-Transaction-Id',
    'Clear-Transaction-Id',
    'Set-Authorization-User',
    'Reset-Authorization-User',
  ].map((header) => [`x-trino-${header.toLowerCase()}`, header]),
)

/** A user name for a request that has none: a cluster without authentication refuses requests without a name. */
async function someUser(cluster: RelayTarget): Promise<Record<string, string>> {
  const isNamed = cluster.tls?.cert !== undefined || Object.keys(await cluster.credentials()).length > 0
  return isNamed ? {} : { 'x-trino-user': 'quipu' }
}
