import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { comparePlans } from './compare-plans.ts'
import type { ReplayLine } from './replay-line.ts'
import type { ReplayPlan } from './replay-plan.ts'
import { replayStatement, type ReplaySides } from './replay-statement.ts'
import type { Replayed } from './replayed.ts'
import type { ListedQuery } from './replay-source.ts'
import type { ReadStatement } from './recorded-statement.ts'

export interface ReplayOptions {
  readonly sides: ReplaySides
  /** `plan`: compares plans and runs nothing. */
  readonly mode: 'run' | 'plan'
  readonly read: (queryId: string) => Promise<ReadStatement>
  /** How many statements run at once. */
  readonly concurrency: number
  /** Speed relative to the recorded times: 1 is the same pace; undefined: as fast as possible. */
  readonly speed: number | undefined
  /** Whether lines include differing rows and the texts. */
  readonly rows: boolean
  /** Called with each line once it is known. The replay waits for it. */
  readonly onLine: (line: ReplayLine) => Promise<void> | void
}

/**
 * Runs the planned statements again, in the order in which they were posted.
 * @throws Error when a server cannot be reached; statements in progress have no line then
 */
export async function replay(plan: ReplayPlan, options: ReplayOptions): Promise<void> {
  const { sides, concurrency } = options
  const failed = new AbortController()
  const signal = AbortSignal.any([sides.signal, failed.signal])
  // Every request listens to this signal.
  setMaxListeners(0, signal)
  const pace = paceOf(options.speed, signal)
  const queries = plan.queries()
  const take = async (): Promise<void> => {
    for (;;) {
      const { value: listed, done } = await queries.next()
      if (done || signal.aborted) return
      await pace(listed)
      if (signal.aborted) return
      await options.onLine(await lineOf(listed, { ...options, sides: { ...sides, signal } }))
    }
  }
  const takers = Array.from({ length: concurrency }, () =>
    take().catch((error: unknown) => {
      failed.abort()
      throw error
    }),
  )
  const results = await Promise.allSettled(takers)
  const broken = results.find((end) => end.status === 'rejected')
  if (broken && !sides.signal.aborted) throw broken.reason
}

async function lineOf({ queryId, createdAt }: ListedQuery, options: ReplayOptions): Promise<ReplayLine> {
  const read = await options.read(queryId)
  if (read.kind === 'skipped')
    return { queryId, createdAt: read.createdAt || createdAt, verdict: 'SKIPPED', reason: read.reason }
  const { statement } = read
  const { sides, mode } = options
  const { verdict, examples, ...figures }: Replayed =
    mode === 'plan' ? await comparePlans(statement, sides) : await replayStatement(statement, sides)
  return {
    queryId,
    createdAt: statement.createdAt,
    user: statement.session.user,
    ...figures,
    ...(options.rows && { examples: [...examples], sql: statement.sql }),
    ...verdict,
  }
}

/** Waits until as much time has passed since the first query as in the record. */
function paceOf(speed: number | undefined, signal: AbortSignal): (listed: ListedQuery) => Promise<void> {
  if (speed === undefined) return () => Promise.resolve()
  let first: { readonly then: number; readonly now: number } | undefined
  return async ({ createdAt }) => {
    const then = Date.parse(createdAt)
    if (Number.isNaN(then)) return
    first ??= { then, now: performance.now() }
    const wait = (then - first.then) / speed - (performance.now() - first.now)
    if (wait > 0) await sleep(wait, undefined, { signal }).catch(() => {})
  }
}
