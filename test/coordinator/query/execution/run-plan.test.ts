import { describe, expect, it } from 'vitest'
import { runOnWorkers } from '../../../../src/coordinator/query/execution/run-plan.ts'
import { queryTotals, stageTimes } from '../../../../src/coordinator/query/statistics/totals.ts'
import type { QueryCommand } from '../../../../src/coordinator/query/stream/decider.ts'
import { plannedData, recordedPlan } from '../../../../src/coordinator/query/stream/planned-data.ts'
import type { KnownQuery } from '../../../../src/coordinator/query/stream/state.ts'
import { WorkerLost } from '../../../../src/coordinator/scheduler/worker-error.ts'
import type { ClosedPage, TaskStats, TaskStatus } from '../../../../src/execution/api/task.ts'
import { makePlan, type Stage } from '../../../../src/planner/query-plan.ts'
import type { StageInfo } from '../../../../src/protocol/info/schemas/query.ts'
import { answerText } from '../../../../src/protocol/statement/query-results.ts'
import { stageTree } from '../../../../src/protocol/query/stage-tree.ts'
import { failureOf } from '../../../../src/shared/engine-error.ts'
import { parseNodeId, splitTaskId, taskId, type TaskId } from '../../../../src/shared/ids.ts'
import { at, QUERY_ID, sampleData, taskStats } from '../../../support/query-events.ts'
import { createStageBed, fragment, taskStatus } from '../../../support/stage-bed.ts'
import { createStatementBed, MemoryLog } from '../../../support/statement-bed.ts'

/** Two leaf stages, a stage that reads both, and the root that relays its pages. */
const stages: readonly Omit<Stage, 'output'>[] = [
  { id: 0, distribution: 'coordinator', inputs: [1], splits: [] },
  { id: 1, distribution: 'single', inputs: [2, 3], splits: [], fragment },
  { id: 2, distribution: 'single', inputs: [], splits: [], fragment: { ...fragment, estimate: { small: false } } },
  { id: 3, distribution: 'single', inputs: [], splits: [], fragment },
]
const plan = makePlan('local', stages, 'client')
const { columns, tables } = sampleData.QueryPlanned
const planned = plannedData({ queryType: 'SELECT', plan, columns, tables, analysisNanos: 1, planningNanos: 1 }, at(1))
const createBed = (holdMs?: number) => createStageBed({ planned, ...(holdMs !== undefined && { holdMs }) })
type Bed = Awaited<ReturnType<typeof createBed>>

const page: ClosedPage = { token: 0, batch: 0, rows: 10, bytes: 100_000, sha256: 'ab', lastOfBatch: true }
/** The figures of a task: the leaf stages read 100 rows each, and every stage makes 10. */
const statsOf = (id: TaskId): TaskStats => ({
  ...taskStats,
  processedInputPositions: splitTaskId(id)!.stage === 1 ? 20 : 100,
  outputPositions: 10,
})
const finished = (id: TaskId, changed: Partial<TaskStatus> = {}): TaskStatus =>
  taskStatus(id, { pages: [page], bufferedPages: 1, stats: statsOf(id), ...changed })

/** Lets the workers finish every task at once, with one page. */
async function bedOfWorkers(holdMs?: number): Promise<Bed> {
  const bed = await createBed(holdMs)
  bed.client.createTask = async (_url, id) => finished(id)
  return bed
}

function stateOf(bed: Bed): KnownQuery {
  const { intended } = bed.aggregate
  if (intended.kind === 'NONE') throw new Error('the query exists')
  return intended
}

const created = (stage: number, task: number, nodeUrl = 'http://w1'): QueryCommand => ({
  type: 'CreateTask',
  data: {
    taskId: taskId(QUERY_ID, stage, task),
    stage,
    nodeId: parseNodeId('w1'),
    nodeUrl,
    splits: 0,
    attempt: 0,
  },
})
const ended = (stage: number, task: number): QueryCommand => ({
  type: 'FinishTask',
  data: {
    taskId: taskId(QUERY_ID, stage, task),
    stage,
    nodeId: parseNodeId('w1'),
    nodeUrl: 'http://w1',
    stats: taskStats,
  },
})

describe('A plan of three stages on workers', () => {
  it('names the output of every stage, also after it was recorded', () => {
    expect(plan.stages.map(({ id, output }) => [id, output])).toEqual([
      [0, 'client'],
      [1, 'client'],
      [2, 'exchange'],
      [3, 'exchange'],
    ])
    expect(recordedPlan(planned)).toEqual(plan)
  })

  it('runs the leaf stages first, and publishes only the pages of the stage that the root relays', async () => {
    const bed = await bedOfWorkers()
    await runOnWorkers(bed.deps, bed.run, plan, undefined)
    const post = (stage: number) => `POST ${stage}.0 at http://w1`
    expect(bed.asked.slice(0, 2).toSorted()).toEqual([post(2), post(3)])
    expect(bed.asked.slice(2)).toEqual([post(1)])
    expect(stateOf(bed).pages.map(({ taskId: task }) => task)).toEqual([taskId(QUERY_ID, 1, 0)])
    expect(stateOf(bed).resultComplete).toBe(true)
    const states = [...stateOf(bed).tasks.values()].map(({ stage, state }) => [stage, state])
    expect(states.toSorted()).toEqual([0, 1, 2, 3].map((stage) => [stage, 'FINISHED']))
    expect(bed.listeners.size).toBe(0)
  })

  it('is recorded together with the task that is recorded first', async () => {
    const bed = await bedOfWorkers(60_000)
    await runOnWorkers(bed.deps, bed.run, plan, { type: 'PlanQuery', data: planned })
    const types = bed.log.typesOf(QUERY_ID)
    expect(types.slice(0, 4)).toEqual(['QueryCreated', 'QueryPlanned', 'TaskCreated', 'TaskCreated'])
    expect(types.filter((type) => type === 'QueryPlanned')).toHaveLength(1)
  })

  it('retries a leaf stage alone', async () => {
    const bed = await createBed()
    bed.client.createTask = async (_url, id) => {
      if (id === taskId(QUERY_ID, 2, 0)) throw new WorkerLost('no answer')
      return finished(id)
    }
    await runOnWorkers(bed.deps, bed.run, plan, undefined)
    const posts = bed.asked.filter((one) => one.startsWith('POST')).map((one) => one.split(' ')[1])
    expect(posts.toSorted()).toEqual(['1.0', '2.0', '2.1', '3.0'])
    expect(posts.at(-1)).toBe('1.0')
    expect(stateOf(bed).tasks.get(taskId(QUERY_ID, 2, 1))?.retryOf).toBe(taskId(QUERY_ID, 2, 0))
  })

  it('retries the stage in between without its inputs, while no page of it is published', async () => {
    const bed = await createBed()
    bed.client.createTask = async (_url, id) => {
      if (id === taskId(QUERY_ID, 1, 0)) throw new WorkerLost('no answer')
      return finished(id)
    }
    await runOnWorkers(bed.deps, bed.run, plan, undefined)
    const posts = bed.asked.filter((one) => one.startsWith('POST')).map((one) => one.split(' ')[1])
    expect(posts.toSorted()).toEqual(['1.0', '1.1', '2.0', '3.0'])
    expect(stateOf(bed).pages.map(({ taskId: task }) => task)).toEqual([taskId(QUERY_ID, 1, 1)])
  })

  it('fails with the failure of a leaf stage, and does not begin the stage that reads it', async () => {
    const bed = await createBed()
    const { location: _, ...failure } = failureOf('DIVISION_BY_ZERO', 'Division by zero')
    bed.client.createTask = async (_url, id) =>
      splitTaskId(id)!.stage === 3 ? taskStatus(id, { state: 'FAILED', failure }) : finished(id)
    const run = runOnWorkers(bed.deps, bed.run, plan, undefined)
    await expect(run).rejects.toMatchObject({ errorName: 'DIVISION_BY_ZERO' })
    expect(bed.asked.filter((one) => one.startsWith('POST 1.'))).toEqual([])
  })

  it('continues after a restart: ended stages stay ended, and running tasks are followed', async () => {
    const bed = await bedOfWorkers()
    const recover: QueryCommand = { type: 'RecoverQuery', data: sampleData.QueryRecovered }
    await bed.aggregate.execute([created(2, 0), created(3, 0), ended(2, 0), recover])
    bed.client.getTask = async (_url, id) => finished(id)
    await runOnWorkers(bed.deps, bed.run, plan, undefined)
    expect(bed.asked).toEqual(['GET 3.0 at http://w1', 'POST 1.1000 at http://w1'])
    expect(stateOf(bed).resultComplete).toBe(true)
  })

  it('is continued from its record by the execution of a recovered query', async () => {
    const bed = await bedOfWorkers()
    bed.client.getTask = async (_url, id) => finished(id)
    await bed.aggregate.execute([created(2, 0), created(3, 0), ended(3, 0)])
    const events = bed.log.streams.get(QUERY_ID)!.map(({ type, time, data }) => ({ type, time, data }))
    const statements = createStatementBed({
      log: new MemoryLog(),
      deps: { ...bed.deps, log: bed.log.asEventLog(), catalogs: { names: () => [], get: () => undefined } },
    })
    const execution = statements.resume(events as unknown as Parameters<typeof statements.resume>[0])
    while (!execution.aggregate.intended.kind.startsWith('FIN')) await execution.news(execution.revision, 1000)
    expect(bed.asked.map((one) => one.split(' ').slice(0, 2).join(' '))).toEqual(['GET 2.0', 'POST 1.0'])
    await execution.finish()
    expect(execution.aggregate.state).toMatchObject({ kind: 'FINISHED', finished: { rows: 10 } })
  })
})

describe('The stages of a query of three stages', () => {
  const view = (query: KnownQuery) => ({ query, liveStats: new Map() })
  const shapeOf = ({ stageId, state, subStages }: StageInfo): unknown => [
    stageId.slice(QUERY_ID.length + 1),
    state,
    ...subStages.map(shapeOf),
  ]

  it('are shown as a tree, with the state of each', async () => {
    const bed = await createBed()
    await bed.aggregate.execute([created(2, 0), created(3, 0), ended(3, 0)])
    const tree = stageTree(view(stateOf(bed)) as unknown as Parameters<typeof stageTree>[0], 'http://q')!
    expect(shapeOf(tree)).toEqual(['0', 'RUNNING', ['1', 'SCHEDULED', ['2', 'RUNNING'], ['3', 'FINISHED']]])
  })

  it('are in the statistics of the statement, and only the last one counts as output', async () => {
    const bed = await bedOfWorkers()
    await runOnWorkers(bed.deps, bed.run, plan, undefined)
    const query = stateOf(bed)
    expect(stageTimes(query).map(({ state }) => state)).toEqual(Array(4).fill('FINISHED'))
    const totals = queryTotals(query, new Map(), Date.now())
    expect(totals).toMatchObject({ processedInputPositions: 200, outputPositions: 10, totalTasks: 4 })
    const answer = answerText(
      {
        ...view(query),
        now: Date.now(),
        nextToken: undefined,
        queuedReason: undefined,
        failure: undefined,
        initial: false,
      },
      { infoUri: () => '', nextUri: () => '', partialCancelUri: () => '' } as never,
      false,
    )
    const { rootStage } = JSON.parse(answer.head + answer.tail).stats
    const ids = ({ stageId, subStages }: { stageId: string; subStages: never[] }): unknown => [
      stageId,
      ...subStages.map(ids),
    ]
    expect(ids(rootStage)).toEqual(['0', ['1', ['2'], ['3']]])
  })
})
