import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { QuerySession } from '../../coordinator/query/stream/events.ts'
import type { ReadStatement, RecordedStatement } from '../recorded-statement.ts'
import type { ReplayLine } from '../replay-line.ts'
import { replayStatement, type ReplaySides } from '../replay-statement.ts'
import type { FinishedQuery, MirrorQueue } from './mirror-queue.ts'
import type { RateLimit } from './rate-limit.ts'
import { whyNotMirrored } from './why-not-mirrored.ts'

export interface ShadowOptions {
  readonly sides: Omit<ReplaySides, 'signal'>
  readonly queue: MirrorQueue
  readonly limit: RateLimit
  /** How many statements run at once. */
  readonly concurrency: number
  /** Once it aborts, no further statement begins. */
  readonly closing: AbortSignal
  /** Once it aborts, running statements are canceled. */
  readonly stopping: AbortSignal
  readonly read: (queryId: string, signal: AbortSignal) => Promise<ReadStatement>
  /** Whether the filter takes statements of the session. */
  readonly isMeant: (session: QuerySession) => boolean
  readonly appOf: (statement: RecordedStatement) => string | undefined
  /** Called before each query is worked on, so that the position that includes the query can be saved. */
  readonly onBegin: () => void
  readonly onLine: (line: ReplayLine) => void
  /**
   * Called if a server broke off a statement. Resolves when both servers answer again.
   * @throws Error if no statement can run, such as for wrong credentials
   */
  readonly onBroken: (error: Error, signal: AbortSignal) => Promise<void>
  /** Whether lines include the texts of statements and the rows that differ. */
  readonly rows: boolean
}

/** The most attempts at a statement that a server breaks off. A statement may crash a server only so often. */
const MOST_ATTEMPTS = 3

/**
 * Mirrors the queries of a queue until `closing` aborts and running statements are done, or until `stopping` aborts.
 * @throws the error of `onBroken`
 */
export async function shadow(options: ShadowOptions): Promise<void> {
  const failed = new AbortController()
  const stopping = AbortSignal.any([options.stopping, failed.signal])
  const closing = AbortSignal.any([options.closing, stopping])
  // Every request in progress listens to these signals.
  setMaxListeners(0, stopping, closing)
  const workers = Array.from({ length: options.concurrency }, () =>
    work(options, closing, stopping).catch((error: unknown) => {
      failed.abort()
      throw error
    }),
  )
  const results = await Promise.allSettled(workers)
  const broken = results.find((result) => result.status === 'rejected')
  if (broken && !options.stopping.aborted) throw broken.reason
}

async function work(options: ShadowOptions, closing: AbortSignal, stopping: AbortSignal): Promise<void> {
  const { queue, limit } = options
  for (;;) {
    const query = await queue.take(closing)
    if (!query) return
    options.onBegin()
    await sleep(limit.reserve(performance.now()), undefined, { signal: closing }).catch(() => {})
    if (closing.aborted) return
    const line = await lineOf(query, options, stopping)
    if (line === undefined) return
    if (line !== 'ignored') options.onLine(line)
    queue.settle(query, line === 'ignored')
  }
}

/** @returns undefined once `signal` aborts */
async function lineOf(
  query: FinishedQuery,
  options: ShadowOptions,
  signal: AbortSignal,
): Promise<ReplayLine | 'ignored' | undefined> {
  for (let attempt = 1; ; attempt++)
    try {
      return await attemptLine(query, options, signal)
    } catch (error) {
      if (signal.aborted) return undefined
      await options.onBroken(error as Error, signal)
      if (signal.aborted) return undefined
      if (attempt < MOST_ATTEMPTS) continue
      const there = { name: 'BROKEN_OFF', message: (error as Error).message }
      return { queryId: query.queryId, createdAt: '', recordedMs: query.elapsedMs, verdict: 'UNCONFIRMED', there }
    }
}

async function attemptLine(
  { queryId, elapsedMs: recordedMs }: FinishedQuery,
  options: ShadowOptions,
  signal: AbortSignal,
): Promise<ReplayLine | 'ignored'> {
  const read = await options.read(queryId, signal)
  const { session } = read.kind === 'skipped' ? read : read.statement
  if (session && !options.isMeant(session)) return 'ignored'
  if (read.kind === 'skipped') {
    const { createdAt, reason } = read
    return { queryId, createdAt, ...(session && { user: session.user }), recordedMs, verdict: 'SKIPPED', reason }
  }
  const { statement } = read
  const app = options.appOf(statement)
  const { createdAt, fingerprint } = statement
  const known = {
    queryId,
    createdAt,
    user: statement.session.user,
    recordedMs,
    ...(app !== undefined && { app }),
    ...(fingerprint !== undefined && { fingerprint }),
  }
  const reason = whyNotMirrored(statement)
  if (reason) return { ...known, verdict: 'SKIPPED', reason }
  const { verdict, examples, ...figures } = await replayStatement(statement, { ...options.sides, signal })
  return { ...known, ...figures, ...(options.rows && { examples: [...examples], sql: statement.sql }), ...verdict }
}
