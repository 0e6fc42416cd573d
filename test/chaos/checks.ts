import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { z } from 'zod'
import type { Recorded } from '../../src/events/event-log.ts'
import { readStreams } from '../../src/readmodels/query-events/queries.ts'
import { embeddedConnection } from '../support/embedded-connection.ts'
import { isAlive } from '../support/quipu-process.ts'
import type { Outcome } from './outcome.ts'
import type { SeenProcesses } from './process-tree.ts'
import type { RightAnswer } from './right-answers.ts'
import type { ChaosServer } from './server.ts'
import { statementOf, type StatementName } from './statements.ts'
import { foldStream } from './stream-rules.ts'

const QUIET_MS = 40_000
const CLEAN_MS = 45_000
const END_STATES: ReadonlySet<string> = new Set(['FINISHED', 'CANCELED', 'ABORTED', 'FAILED'])
const taskListSchema = z.array(
  z.object({ taskId: z.string(), state: z.string(), outputBuffers: z.object({ state: z.string() }) }),
)
const OPEN_STATES = 'QUEUED,PLANNING,STARTING,RUNNING,FINISHING'

/** Waits until no query is open. Returns the violations, a line each. */
export async function becomesQuiet(server: ChaosServer): Promise<string[]> {
  let open: unknown = 'nothing was answered'
  const quiet = await within(QUIET_MS, async () => {
    open = await json(`${server.base}/v1/query?state=${OPEN_STATES}`)
    return Array.isArray(open) && open.length === 0
  })
  return quiet ? [] : [`queries are open ${QUIET_MS} ms after the last client: ${JSON.stringify(open).slice(0, 500)}`]
}

/**
 * Checks that workers keep no tasks and no pages of ended queries.
 * @param pagesToo whether pages must be gone too; otherwise finished tasks may still serve their pages
 */
export async function workersAreClean(server: ChaosServer, pagesToo: boolean): Promise<string[]> {
  let left: string[] = []
  const clean = await within(CLEAN_MS, async () => {
    left = []
    const nodes = (await json(`${server.base}/v1/node`)) as { uri: string; state: string }[]
    for (const { uri, state } of nodes) {
      if (uri === server.base || state !== 'active') continue
      const tasks = taskListSchema.parse(await json(`${uri}/v1/task`))
      for (const { taskId, state: taskState, outputBuffers } of tasks) {
        // Deleted tasks stay in the list for minutes, with a FINISHED buffer.
        const holds = pagesToo && outputBuffers.state !== 'FINISHED'
        if (!END_STATES.has(taskState) || holds) left.push(`task ${taskId} (${taskState}) is left on ${uri}`)
      }
    }
    if (!pagesToo) return left.length === 0
    for (const worker of readdirSync(server.dataDir).filter((name) => name.startsWith('worker-'))) {
      const pages = join(server.dataDir, worker, 'pages')
      if (existsSync(pages)) for (const name of readdirSync(pages)) left.push(`pages ${name} are left on ${worker}`)
    }
    return left.length === 0
  })
  return clean ? [] : left.length > 0 ? left.slice(0, 5) : ['the workers do not say which tasks they have']
}

/** Checks the stream of each query with the state machine, and compares the outcomes of clients with the streams. */
export async function checkStreams(
  server: ChaosServer,
  outcomes: readonly Outcome[],
  right: ReadonlyMap<StatementName, RightAnswer>,
): Promise<string[]> {
  const streams = await readAllStreams(server.dataDir)
  const broken: string[] = []
  const folded = new Map(
    [...streams].map(([queryId, events]) => {
      const stream = foldStream(queryId, events)
      broken.push(...stream.broken)
      return [queryId, stream.state] as const
    }),
  )
  for (const { id, name, result, behaviour, why } of outcomes) {
    if (id === undefined) continue
    const state = folded.get(id)
    if (!state) broken.push(`${id} was given out and is not in the log`)
    else if (result === 'right' && !behaviour.startsWith('cancel')) {
      const { error } = statementOf(name)
      const is = state.kind === 'FAILED' ? state.failure.errorName : state.kind
      if (is !== (error ?? 'FINISHED')) broken.push(`${id} ${name}: the client saw it whole, the log says ${is}`)
      const rows = right.get(name)?.rows.length
      const isUnknown = state.kind === 'FINISHED' && state.planned?.route === 'delegated' && state.finished.rows === 0
      if (state.kind === 'FINISHED' && rows !== undefined && state.finished.rows !== rows && !isUnknown) {
        broken.push(`${id} ${name}: ${rows} rows, the log says ${state.finished.rows}`)
      }
    } else if (result === 'clean' && state.kind !== 'FAILED' && !why?.startsWith('PAGE_TRANSPORT_ERROR')) {
      broken.push(`${id} ${name}: the client got ${why}, the log says ${state.kind}`)
    }
  }
  return broken
}

async function readAllStreams(dataDir: string): Promise<Map<string, Recorded[]>> {
  const database = new pg.Client({ ...embeddedConnection(dataDir), options: '-c search_path=m,public' })
  await database.connect()
  try {
    const query = async (text: string, values: readonly unknown[] = []) =>
      (await database.query<Record<string, unknown>>(text, [...values])).rows
    const ids = await query("select distinct stream from query_events where type = 'QueryCreated'")
    const streams = new Map<string, Recorded[]>()
    const events = await readStreams(
      query,
      ids.map(({ stream }) => String(stream)),
    )
    for (const event of events) {
      const known = streams.get(event.stream)
      if (known) known.push(event)
      else streams.set(event.stream, [event])
    }
    return streams
  } finally {
    await database.end()
  }
}

/** Runs `quipu audit verify --read-models` beside the server. It checks hash chains, ends and read models. */
export async function auditLog(server: ChaosServer): Promise<string[]> {
  const { code, stdout, stderr } = await server.command('audit', 'verify', '--read-models', '--json').exit
  const lines = stdout.split('\n').filter(Boolean)
  const { summary } = JSON.parse(lines.at(-1) ?? '{}') as { summary?: { open: number } }
  if (!summary) return [`the audit ended with ${code}: ${stderr.slice(-500)}`]
  return [...lines.slice(0, -1).slice(0, 5), ...(summary.open > 0 ? [`${summary.open} queries without an end`] : [])]
}

/** Stops the server by SIGTERM. It must exit with 0 and leave no process. */
export async function stopsWhole(server: ChaosServer, seen: SeenProcesses): Promise<string[]> {
  await seen.look()
  seen.stop()
  const code = await server.stop()
  const gone = await within(5_000, async () => seen.running().length === 0)
  const left = gone ? [] : seen.running()
  for (const pid of left) if (isAlive(pid)) process.kill(pid, 'SIGKILL')
  return [
    ...(code === 0 ? [] : [code === undefined ? 'it does not end on SIGTERM' : `it ended with ${code} on SIGTERM`]),
    ...(left.length > 0 ? [`processes ${left.join(', ')} are left after SIGTERM`] : []),
  ]
}

async function json(url: string): Promise<unknown> {
  const answer = await fetch(url, { headers: { 'x-trino-user': 'chaos' }, signal: AbortSignal.timeout(10_000) })
  if (answer.status !== 200) throw new Error(`${url}: ${answer.status}`)
  return answer.json()
}

/** Whether a condition becomes true in time. A condition that throws counts as not yet true. */
async function within(timeoutMs: number, condition: () => Promise<boolean>): Promise<boolean> {
  for (const until = performance.now() + timeoutMs; performance.now() < until; await sleep(150)) {
    if (await condition().catch(() => false)) return true
  }
  return false
}
