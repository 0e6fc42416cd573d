import type { QueryCommand } from '../../src/coordinator/query/stream/decider.ts'
import type { QueryEventOf } from '../../src/coordinator/query/stream/events.ts'
import { createQueryAggregate } from '../../src/coordinator/query/stream/query-aggregate.ts'
import { createPageMemories } from '../../src/coordinator/query/results/page-memory.ts'
import { createRecorder } from '../../src/coordinator/query/stream/recorder.ts'
import { OngoingWork } from '../../src/coordinator/query/execution/ongoing-work.ts'
import type { RunContext } from '../../src/coordinator/query/execution/run-context.ts'
import type { WorkerStageDeps } from '../../src/coordinator/query/execution/worker-stage.ts'
import type { TaskHub, TaskListener } from '../../src/coordinator/scheduler/task-hub.ts'
import type { WorkerClient } from '../../src/coordinator/scheduler/worker-client.ts'
import type { WorkerDirectory, WorkerNode } from '../../src/coordinator/scheduler/workers.ts'
import type { Fragment } from '../../src/execution/api/fragment.ts'
import type { TaskStatus } from '../../src/execution/api/task.ts'
import { parseNodeId, type TaskId } from '../../src/shared/ids.ts'
import type { Stage } from '../../src/planner/query-plan.ts'
import { QUERY_ID, sampleData, taskStats } from './query-events.ts'
import { MemoryLog } from './statement-bed.ts'
import { Placement } from '../../src/coordinator/scheduler/placement.ts'

/** The status of a task from a worker. By default the task has finished without rows. */
export function taskStatus(taskId: TaskId, changed: Partial<TaskStatus> = {}): TaskStatus {
  return {
    taskId,
    instanceId: 'i',
    version: 1,
    state: 'FINISHED',
    lastHeartbeat: '2026-01-02T03:04:05.000Z',
    attempt: 0,
    bufferState: 'FINISHED',
    noMoreSplits: [],
    pages: [],
    batchesDone: [0],
    batchesTotal: 1,
    pagesSent: 0,
    bufferedPages: 0,
    stats: taskStats,
    ...changed,
  }
}

export const fragment: Fragment = {
  sql: 'SELECT 1 AS c0',
  scans: [],
  output: [],
  streams: false,
  ordered: false,
  estimate: { small: true },
  risky: false,
}

interface StageBedOptions {
  /** How long the first events of the query wait for further events; if absent, they are in the log already. */
  readonly holdMs?: number
  readonly planned?: QueryEventOf<'QueryPlanned'>['data']
}

/** A worker stage of a planned query, over ports that record their calls. */
export async function createStageBed({ holdMs, planned = sampleData.QueryPlanned }: StageBedOptions = {}) {
  const log = new MemoryLog()
  const clock = { now: () => Date.now(), monotonicMs: () => performance.now() }
  const aggregate = createQueryAggregate(QUERY_ID, log, clock, () => undefined)
  const create: QueryCommand = { type: 'CreateQuery', data: sampleData.QueryCreated }
  const plan: QueryCommand = { type: 'PlanQuery', data: planned }
  if (holdMs === undefined) await aggregate.execute([create, plan])
  const recorder = createRecorder(aggregate, holdMs === undefined ? undefined : create, { holdMs: holdMs ?? 0, clock })
  const work = new OngoingWork()
  const listeners = new Map<TaskId, TaskListener>()
  /** `POST 1.0 at http://w1` …, in order. */
  const asked: string[] = []
  const short = (taskId: TaskId): string => taskId.slice(QUERY_ID.length + 1)
  const unexpected = (): never => {
    throw new Error('Nobody asks for that here')
  }
  const client: WorkerClient = {
    createTask: async (_url, taskId) => taskStatus(taskId),
    getTask: async () => undefined,
    deleteTask: async (url, taskId) => void asked.push(`DELETE ${short(taskId)} at ${url}`),
    deleteTasks: unexpected,
    shutDown: unexpected,
    fetchPage: async () => undefined,
    acknowledge: unexpected,
    taskNews: unexpected,
    forward: unexpected,
    close: () => {},
  }
  const nodes: WorkerNode[] = [{ nodeId: parseNodeId('w1'), url: 'http://w1' }]
  const workers: WorkerDirectory = {
    active: () => nodes,
    byUrl: (url) => nodes.find((node) => node.url === url),
    byId: (nodeId) => nodes.find((node) => node.nodeId === nodeId),
    onChange: () => {},
  }
  const hub: TaskHub = {
    listen: (_url, taskId, listener) => void listeners.set(taskId, listener),
    forget: (_url, taskId) => void listeners.delete(taskId),
    followed: () => listeners.size,
    stop: () => {},
  }
  const asking: WorkerClient = {
    ...client,
    createTask: (url, taskId, update) => {
      asked.push(`POST ${short(taskId)} at ${url}`)
      return client.createTask(url, taskId, update)
    },
    getTask: (url, taskId) => {
      asked.push(`GET ${short(taskId)} at ${url}`)
      return client.getTask(url, taskId)
    },
    fetchPage: (url, page) => {
      asked.push(`GET ${short(page.taskId)}/${page.token} at ${url}`)
      return client.fetchPage(url, page)
    },
  }
  const deps: WorkerStageDeps = {
    log: log.asEventLog(),
    clock,
    client: asking,
    hub,
    workers,
    digester: undefined,
    profiles: () => true,
    placement: new Placement({ workers, clock, workerWaitMs: 60_000 }),
  }
  const run: Partial<RunContext> = {
    queryId: QUERY_ID,
    user: 'alice',
    startTimeMillis: 0,
    aggregate,
    signal: work.signal,
    limits: { attempts: 4, forTask: () => ({ remainingMillis: 1e6 }) },
    record: recorder.record,
    recordSoon: recorder.recordSoon,
    holdOn: recorder.holdOn,
    finish: () => () => [],
    splitsOf: async (stage) => stage.splits,
    spanOf: () => undefined,
    onWork: (begun) => work.add(begun),
    onStats: () => {},
    pages: createPageMemories(0).ofQuery(),
  }
  const stage: Stage = { id: 1, fragment, distribution: 'single', inputs: [], output: 'client', splits: [] }
  return {
    deps,
    run: run as RunContext,
    stage,
    plan,
    log,
    /** A test chooses its answers. */
    client,
    nodes,
    asked,
    listeners,
    /** Ends early by `stop`, or as its process stops by `suspend`. */
    work,
    aggregate,
    /** The tokens of published pages in the output of their task. */
    publishedTokens: () =>
      aggregate.intended.kind === 'NONE' ? [] : aggregate.intended.pages.map(({ taskToken }) => taskToken),
    /** The types of the events of the query after the plan. */
    events: () => log.typesOf(QUERY_ID).slice(2),
  }
}
