import { beforeAll, describe, expect, it } from 'vitest'
import { cloudEvent, queryInfoSchema, queryListItemSchema } from '../../src/protocol/info/schemas/query.ts'
import { nodeInfoSchema, serverInfo, serverStatus } from '../../src/protocol/info/schemas/server.ts'
import { taskInfoSchema } from '../../src/protocol/info/schemas/task.ts'
import { queryResults } from '../../src/protocol/info/schemas/statement.ts'
import { processesOf, waitUntil } from '../support/quipu-process.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { post, run } from '../support/statement-client.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- answers are looked at field by field
type Json = any

const server = serverOfFile()
let base: string
let queryId: string

beforeAll(async () => {
  base = server.url
  const ran = await run(base, 'SELECT name, regionkey FROM nation WHERE regionkey < 3')
  queryId = ran.answers[0]!.id
  expect(ran.rows).toHaveLength(15)
}, 240_000)

async function get(path: string): Promise<Json> {
  const response = await fetch(base + path, { headers: { accept: 'application/json' } })
  expect([path, response.status]).toEqual([path, 200])
  return response.json()
}

describe('The answers of a running server', () => {
  it('satisfy the schemas of /openapi.json', async () => {
    const first = await post(base, 'SELECT 1')
    expect(queryResults.parse(first.json)).toEqual(first.json)
    const info = await get(`/v1/query/${queryId}`)
    expect(queryInfoSchema.parse(info)).toEqual(info)
    for (const item of await get('/v1/query')) expect(queryListItemSchema.parse(item)).toEqual(item)
    const nodes = await get('/v1/node')
    expect(nodes).toHaveLength(1)
    expect(nodeInfoSchema.parse(nodes[0])).toEqual(nodes[0])
    expect(await get('/v1/node/failed')).toEqual([])
    for (const task of await get('/v1/task')) expect(taskInfoSchema.parse(task)).toEqual(task)
    for (const event of await get(`/v1/query/${queryId}/events`)) expect(cloudEvent.parse(event)).toEqual(event)
    const about = await get('/v1/info')
    expect(serverInfo.parse(about)).toEqual(about)
    const status = await get('/v1/status')
    expect(serverStatus.parse(status)).toEqual(status)
    expect(status).toMatchObject({ ready: true, writer: true, deadLetters: 0, workers: { active: 1 } })
    expect((await get('/openapi.json')).openapi).toBe('3.1.0')
  })

  it('contain the known figures of a query: 25 rows read, 15 rows returned', async () => {
    const { queryStats, outputStage } = await get(`/v1/query/${queryId}`)
    expect(queryStats).toMatchObject({
      rawInputPositions: 25,
      outputPositions: 15,
      totalTasks: 2,
      completedTasks: 2,
      runningTasks: 0,
    })
    const [relay] = outputStage.tasks
    const [work] = outputStage.subStages[0].tasks
    expect(relay.taskId).toBe(`${queryId}.0.0`)
    expect(work.stats).toMatchObject({ rawInputPositions: 25, outputPositions: 15 })
    expect(relay.stats).toMatchObject({ rawInputPositions: 15, outputPositions: 15 })
    const exchange = relay.stats.pipelines[0].operatorSummaries[0]
    expect(exchange.operatorType).toBe('ExchangeOperator')
    expect(exchange.info.pageBufferClientStatuses[0]).toMatchObject({ state: 'closed', pagesReceived: 1 })
  })
})

/** Operators that the plan of a statement certainly has, with their input and output rows. */
const OPERATORS: readonly (readonly [string, readonly (readonly [string, number, number])[]])[] = [
  ['SELECT name FROM nation', [['TableScanOperator', 25, 25]]],
  ['SELECT name FROM nation WHERE regionkey = 1', [['TaskOutputOperator', 5, 5]]],
  [
    'SELECT orderstatus, count(*) FROM orders GROUP BY 1',
    [
      ['TableScanOperator', 15_000, 15_000],
      ['HashAggregationOperator', 15_000, 0],
      ['HashAggregationOperator', 0, 3],
    ],
  ],
  ['SELECT max(totalprice) FROM orders', [['AggregationOperator', 15_000, 0]]],
  [
    'SELECT count(l.linenumber) FROM lineitem l JOIN orders o ON l.orderkey = o.orderkey',
    [
      ['HashBuilderOperator', 15_000, 0],
      ['LookupJoinOperator', 60_175, 60_175],
      ['AggregationOperator', 60_175, 0],
    ],
  ],
  ['SELECT orderkey FROM orders ORDER BY totalprice DESC LIMIT 7', [['TopNOperator', 0, 7]]],
  ['SELECT name, rank() OVER (ORDER BY name) FROM customer', [['TaskOutputOperator', 1500, 1500]]],
  ['SELECT name FROM nation UNION ALL SELECT name FROM region', [['TaskOutputOperator', 30, 30]]],
  ['SELECT 1 + 1', [['ValuesOperator', 1, 1]]],
]

it('every finished task of a statement has operators with the right numbers of rows', async () => {
  for (const [sql, expected] of OPERATORS) {
    const { answers, error } = await run(base, sql)
    expect([sql, error]).toEqual([sql, undefined])
    const { outputStage } = await get(`/v1/query/${answers[0]!.id}`)
    const stages = [outputStage, ...outputStage.subStages]
    const tasks: Json[] = stages.flatMap((stage: Json) => stage.tasks)
    for (const task of tasks) {
      const alone = await get(`/v1/task/${task.taskId}`)
      for (const { stats } of [task, alone]) {
        expect([sql, task.taskId, stats.pipelines.length]).not.toEqual([sql, task.taskId, 0])
        const operators: Json[] = stats.pipelines.flatMap((pipeline: Json) => pipeline.operatorSummaries)
        expect(operators.at(-1)).toMatchObject({
          operatorType: 'TaskOutputOperator',
          outputPositions: stats.outputPositions,
        })
        if (task !== tasks.at(-1)) continue
        const reported = operators.map((one) => [one.operatorType, one.inputPositions, one.outputPositions])
        expect(reported, sql).toEqual(expect.arrayContaining([...expected]))
        if (stages.length > 1) expect([sql, stats.profiled]).toEqual([sql, true])
      }
    }
  }
})

describe('The system tables', () => {
  it('show the query, its tasks and the nodes', async () => {
    const { rows } = await run(base, `SELECT state, "user" FROM system.runtime.queries WHERE query_id = '${queryId}'`)
    expect(rows).toEqual([['FINISHED', expect.any(String)]])
    const tasks = await run(
      base,
      `SELECT output_rows FROM system.runtime.tasks WHERE query_id = '${queryId}' ORDER BY task_id`,
    )
    expect(tasks.rows).toEqual([[15], [15]])
    const nodes = await run(base, "SELECT count(*) FROM system.runtime.nodes WHERE state = 'active'")
    expect(nodes.rows).toEqual([[2]])
  })

  it('join with tables of other catalogs', async () => {
    const { rows, error } = await run(
      base,
      `SELECT c.column_name, n.name FROM information_schema.columns c JOIN nation n ON n.nationkey = c.ordinal_position
       WHERE c.table_schema = 'tiny' AND c.table_name = 'region' ORDER BY c.ordinal_position`,
    )
    expect(error).toBeUndefined()
    expect(rows).toEqual([
      ['regionkey', 'ARGENTINA'],
      ['name', 'BRAZIL'],
      ['comment', 'CANADA'],
    ])
  })
})

it('a new coordinator serves the history of the killed one, and knows its worker', { timeout: 240_000 }, async () => {
  const before = await get(`/v1/query/${queryId}`)
  const epoch = (await get('/v1/status')).epoch
  const coordinator = await coordinatorPid()
  process.kill(coordinator, 'SIGKILL')
  await waitUntil('another coordinator serves', async () => {
    const response = await fetch(`${base}/v1/status`).catch(() => undefined)
    if (response?.status !== 200) return false
    const status = (await response.json()) as Json
    return status.epoch > epoch && status.workers.active === 1
  })
  const after = await get(`/v1/query/${queryId}`)
  expect(after).toEqual(before)
  expect((await get('/v1/query')).map((item: Json) => item.queryId)).toContain(queryId)
  expect((await get(`/v1/query/${queryId}/events`)).at(-1).type).toBe('quipu.query.finished.v2')
})

async function coordinatorPid(): Promise<number> {
  const { nodeId } = await get('/v1/info')
  const pid = Number(String(nodeId).split('-').at(-1))
  expect(processesOf(server.data).children).toContain(pid)
  return pid
}
