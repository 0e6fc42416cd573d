import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { LogEnd } from '../../events/event-log.ts'
import type { QueryRows } from '../../events/projection.ts'
import type { HistoryMoments } from '../../readmodels/history/read-history.ts'

export type Reachable = 'up' | 'down'

/** Whether the dependencies of this process answer; checked every second. */
export interface DependencyHealth {
  readonly log: Reachable
  readonly database: Reachable
  /** Makes reads that fail at once while the database is away, instead of waiting for it. */
  failFast(read: QueryRows): QueryRows
  /** The same for reads of one moment. */
  failFastMoments(moments: HistoryMoments): HistoryMoments
  stop(): Promise<void>
}

const ASKED_EVERY_MS = 1000
/** A dependency without an answer for this long is down: a stopped process accepts connections and stays silent. */
const SILENCE_MS = 1500

/** @param onChange called once when a dependency goes away, and once when it is back */
export function watchDependencies(
  log: LogEnd,
  database: pg.ClientConfig,
  onChange: (name: 'log' | 'database', is: Reachable) => void,
): DependencyHealth {
  const state: Record<'log' | 'database', Reachable> = { log: 'up', database: 'up' }
  const stopping = new AbortController()
  const pool = new pg.Pool({
    ...database,
    application_name: 'quipu health',
    max: 1,
    connectionTimeoutMillis: SILENCE_MS,
    query_timeout: SILENCE_MS,
    allowExitOnIdle: true,
  })
  pool.on('error', () => {})

  async function watch(name: 'log' | 'database', ask: () => Promise<unknown>): Promise<void> {
    while (!stopping.signal.aborted) {
      // A check that timed out is not repeated before it has ended: otherwise more and more checks would be open.
      const asked = ask().then(
        () => 'up' as const,
        () => 'down' as const,
      )
      const late = new AbortController()
      const over = sleep(SILENCE_MS, 'down' as const, { signal: late.signal }).catch(() => 'down' as const)
      setState(name, await Promise.race([asked, over]))
      late.abort()
      const answered = new AbortController()
      setState(name, await Promise.race([asked, aborted(stopping.signal, answered.signal)]))
      answered.abort()
      await sleep(ASKED_EVERY_MS, undefined, { signal: stopping.signal, ref: false }).catch(() => {})
    }
  }

  function setState(name: 'log' | 'database', is: Reachable | undefined): void {
    if (is === undefined || state[name] === is || stopping.signal.aborted) return
    state[name] = is
    onChange(name, is)
  }

  const watching = [watch('log', () => log.tip()), watch('database', () => pool.query('select 1'))]
  return {
    get log() {
      return state.log
    },
    get database() {
      return state.database
    },
    failFast: (read) => (text, values) =>
      state.database === 'up' ? read(text, values) : Promise.reject(new Error('The database does not answer')),
    failFastMoments: (moments) => () =>
      state.database === 'up' ? moments() : Promise.reject(new Error('The database does not answer')),
    async stop() {
      stopping.abort()
      await Promise.all(watching)
      await pool.end().catch(() => {})
    },
  }
}

/** @param until once it is aborted, the listener is removed */
function aborted(signal: AbortSignal, until: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    signal.addEventListener('abort', () => resolve(undefined), { once: true, signal: until })
  })
}
