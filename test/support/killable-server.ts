import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createBlockedAppends, type BlockedAppends } from './blocked-appends.ts'
import { createMigratedDatabase } from './event-log/migrated-database.ts'
import { commandOf, familyOf } from './process-users.ts'
import { killAll, processesOf, runningOn, spawnQuipu, temporaryFolder } from './quipu-process.ts'
import { raw, type RawAnswer, type RawRequest, type StatementJson } from './statement-client.ts'

/** A server whose coordinator can be killed right before an append, and restarts soon. */
export interface KillableServer {
  readonly url: string
  /** The URL of its Postgres. */
  readonly database: string
  readonly appends: BlockedAppends
  /** kill -9 of the coordinator; its supervisor starts another. */
  kill(): void
  /** kill -9 of the worker, or of all engines; others start soon. */
  killWorkers(what: 'worker' | 'engines'): void
  /** Stops or resumes the worker. While it is stopped, no task ends. */
  signalWorker(name: 'SIGSTOP' | 'SIGCONT'): void
  close(): Promise<void>
}

export async function startKillableServer(settings: Readonly<Record<string, string>> = {}): Promise<KillableServer> {
  const folder = temporaryFolder()
  const data = join(folder.path, 'data')
  const database = await createMigratedDatabase()
  const env = {
    QUIPU_LOG_LEVEL: 'error',
    QUIPU_RESTART_BACKOFF_MAX_MS: '200ms',
    // A stopped worker must not count as failed.
    QUIPU_WORKER_FAILED_MS: '60s',
    QUIPU_COORDINATOR_DEAD_MS: '10m',
    ...settings,
  }
  const quipu = spawnQuipu(['start', '--port', '0', '--data-dir', data, '--database-url', database.url], { env })
  const url = await quipu.url
  const appends = await createBlockedAppends(database.url)
  return {
    url,
    database: database.url,
    appends,
    kill: () => void process.kill(processesOf(data).children[0]!, 'SIGKILL'),
    killWorkers: (what) => killAll(what === 'worker' ? [processesOf(data).children[1]!] : enginesOf(data)),
    signalWorker: (name) => void process.kill(processesOf(data).children[1]!, name),
    async close() {
      await appends.close()
      quipu.signal('SIGTERM')
      await quipu.exit
      await database.drop()
      await folder.remove()
    },
  }
}

/** The engines of a server that run now. As root, a launcher starts them, so they are not below the server. */
function enginesOf(data: string): number[] {
  const { supervisor } = processesOf(data)
  const own = familyOf(supervisor).filter((pid) => commandOf(pid).split('\0')[1]?.endsWith('/engine-process.js'))
  return [...own, ...runningOn(data, 'engine-entry')]
}

/** Sends a request, and retries during a restart as clients do. @throws Error for a refusal */
export async function patient(uri: string, options: RawRequest = {}): Promise<RawAnswer> {
  const until = performance.now() + 180_000
  for (;;) {
    const answer = await raw(uri, options).catch(() => undefined)
    if (answer && answer.status < 300) return answer
    if ((answer && answer.status < 500) || performance.now() > until)
      throw new Error(
        `${options.method ?? 'GET'} ${uri}: ${answer ? `${answer.status} ${answer.text}` : 'no connection'}`,
      )
    await sleep(50)
  }
}

/** The answers that a client reads, without the values that identify the run. */
export interface StatementEnd {
  readonly columns: StatementJson['columns']
  /** The rows of all answers. */
  readonly data: readonly unknown[]
  readonly error: StatementJson['error']
  readonly warnings: unknown
  readonly updateType: unknown
  readonly updateCount: unknown
  readonly state: string
  /** The headers of the last answer. */
  readonly headers: RawAnswer['headers']
}

/** Follows a statement from its first answer to its end. */
export async function endOf(first: RawAnswer): Promise<StatementEnd> {
  if (first.status !== 200) throw new Error(`POST: ${first.status} ${first.text}`)
  let last = first
  let columns = first.json.columns
  const data = [...(first.json.data ?? [])]
  for (let next = first.json.nextUri; next !== undefined; next = last.json.nextUri) {
    last = await patient(next)
    columns = last.json.columns ?? columns
    data.push(...(last.json.data ?? []))
  }
  const { error, warnings, updateType, updateCount, stats } = last.json as StatementJson &
    Readonly<Record<'warnings' | 'updateType' | 'updateCount', unknown>>
  const { date: _, ...headers } = last.headers
  // A failed statement returns columns only while it runs, so the columns of the last answer count.
  if (error) columns = last.json.columns
  return { columns, data, error, warnings, updateType, updateCount, state: stats.state, headers }
}
