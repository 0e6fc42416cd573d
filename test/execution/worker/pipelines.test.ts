import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PipelineStats } from '../../../src/execution/api/task.ts'
import { addPipelines, pipelinesOf } from '../../../src/execution/worker/pipelines.ts'
import { openTestPool, type TestPool } from '../../support/engines.ts'

let engines: TestPool
beforeAll(async () => {
  engines = await openTestPool()
})
afterAll(async () => {
  await engines[Symbol.asyncDispose]()
})

const orders = `(SELECT i AS id, i % 10 AS kind FROM range(100000) r(i))`
const few = `(SELECT i * 2 AS id FROM range(1000) r(i))`

async function pipelines(sql: string, kind: 'stream' | 'inline' = 'stream'): Promise<PipelineStats[]> {
  const output =
    kind === 'stream' ? ({ kind, onRows: () => undefined } as const) : ({ kind, maxBytes: 1_000_000 } as const)
  const { profile } = await engines.run(sql, { profile: true, output }).done
  return pipelinesOf(profile!)
}

/** Formats every operator as `name in>out`, with marks for the input and the output pipeline. */
function drawn(all: readonly PipelineStats[]): string[] {
  return all.map(({ operators, inputPipeline, outputPipeline }) => {
    const names = operators.map(
      ({ operatorType, inputPositions, outputPositions }) =>
        `${operatorType.replace(/Operator$/, '')} ${inputPositions}>${outputPositions}`,
    )
    return `${inputPipeline ? 'in: ' : ''}${names.join(', ')}${outputPipeline ? ' :out' : ''}`
  })
}

describe('The pipelines of a statement', () => {
  it('are two for a join: the build side, then the probe side with the output', async () => {
    const sql = `SELECT json_array(o.id, o.kind)::VARCHAR FROM ${orders} o JOIN ${few} f ON o.id = f.id WHERE o.kind <> 7`
    expect(drawn(await pipelines(sql))).toEqual([
      'in: TableScan 1000>1000, FilterAndProject 1000>1000, HashBuilder 1000>0',
      'in: TableScan 100000>100000, FilterAndProject 100000>90000, LookupJoin 90000>1000, FilterAndProject 1000>1000, TaskOutput 1000>1000 :out',
    ])
  })

  it('break at an aggregation and a sort: input rows count below the break, output rows above', async () => {
    const sql = `SELECT json_array(kind, count(*))::VARCHAR FROM ${orders} GROUP BY kind ORDER BY count(*) DESC, kind LIMIT 3`
    expect(drawn(await pipelines(sql))).toEqual([
      'in: TableScan 100000>100000, FilterAndProject 100000>100000, HashAggregation 100000>0',
      'HashAggregation 0>10, FilterAndProject 10>10, TopN 10>0',
      'TopN 0>3, FilterAndProject 3>3, TaskOutput 3>3 :out',
    ])
  })

  it('omit the limit that the engine adds for inline rows', async () => {
    const sql = `SELECT kind AS c0 FROM ${orders} GROUP BY kind ORDER BY kind LIMIT 3`
    const query = { sql, scans: [], row: { kind: 'json', values: ['c0'] } } as const
    const run = (maxBytes: number) =>
      engines.run('', { query, profile: true, output: { kind: 'inline', maxBytes } }).done
    const { profile, inline } = await run(1_000_000)
    expect(inline!.toString()).toBe('[0],\n[1],\n[2]')
    expect(drawn(pipelinesOf(profile!))).toEqual([
      'in: TableScan 100000>100000, FilterAndProject 100000>100000, HashAggregation 100000>0',
      'HashAggregation 0>10, TopN 10>0',
      'TopN 0>3, FilterAndProject 3>3, TaskOutput 3>3 :out',
    ])
    expect(await run(10)).toMatchObject({ overflow: true })
  })

  it('are one per branch of a union, and a set builder for a semi join', async () => {
    const sql = `SELECT json_array(kind)::VARCHAR FROM ${orders} WHERE id IN (SELECT id FROM ${few}) UNION ALL SELECT '[1]'`
    expect(drawn(await pipelines(sql))).toEqual([
      'in: TableScan 1000>1000, FilterAndProject 1000>1000, SetBuilder 1000>0',
      'in: TableScan 100000>100000, FilterAndProject 100000>100000, HashSemiJoin 100000>1000, FilterAndProject 1000>1000, LocalExchangeSink 1000>1000',
      'in: Values 1>1, FilterAndProject 1>1, LocalExchangeSink 1>1',
      'LocalExchangeSource 1001>1001, FilterAndProject 1001>1001, TaskOutput 1001>1001 :out',
    ])
  })

  it('contain a materialized common table expression once, and read it with exchanges', async () => {
    const sql = `WITH c0 AS MATERIALIZED (SELECT id, sum(kind) OVER (ORDER BY id) AS s FROM ${orders})
      SELECT json_array(x.s)::VARCHAR FROM c0 x JOIN c0 y ON x.id = y.id`
    expect(drawn(await pipelines(sql))).toEqual([
      'in: TableScan 100000>100000, FilterAndProject 100000>100000, Window 100000>0',
      'Window 0>100000, FilterAndProject 100000>100000, LocalExchangeSink 100000>100000',
      'LocalExchangeSource 100000>100000, HashBuilder 100000>0',
      'LocalExchangeSource 100000>100000, LookupJoin 100000>100000, FilterAndProject 100000>100000, TaskOutput 100000>100000 :out',
    ])
  })

  it('show the distinct keys of a correlated subquery', async () => {
    const sql = `SELECT json_array(id, (SELECT max(f.id) FROM ${few} f WHERE f.id < o.id))::VARCHAR FROM ${orders} o WHERE id < 2000`
    const all = drawn(await pipelines(sql))
    expect(all[0]).toBe(
      'in: TableScan 100000>100000, FilterAndProject 100000>2000, HashAggregation 2000>2000, LocalExchangeSink 2000>2000',
    )
    expect(all.at(-1)).toMatch(/TaskOutput 2000>2000 :out$/)
    expect(all.filter((line) => line.includes('NestedLoopJoin'))).toHaveLength(1)
  })

  it('end with TaskOutput for inline rows too', async () => {
    expect(drawn(await pipelines(`SELECT '[1]'`, 'inline'))).toEqual([
      'in: Values 1>1, FilterAndProject 1>1, TaskOutput 1>1 :out',
    ])
  })

  it('contain estimates and times', async () => {
    const [only] = await pipelines(`SELECT json_array(id)::VARCHAR FROM ${orders} WHERE kind = 3`)
    expect(only!.operators[0]).toMatchObject({ engineOperator: 'TABLE_SCAN', estimatedPositions: 100_000 })
    expect(only!.operators[1]).toMatchObject({ engineOperator: 'FILTER' })
    expect(only!.scheduledNanos).toBe(only!.operators.reduce((sum, { timeNanos }) => sum + timeNanos, 0))
    expect(only!.scheduledNanos).toBeGreaterThan(0)
    expect(only!.rawInputPositions).toBe(100_000)
  })
})

describe('The pipelines of several batches', () => {
  it('are added up if their operators are the same', async () => {
    const one = await pipelines(`SELECT json_array(id)::VARCHAR FROM ${orders} WHERE kind = 3`)
    const two = addPipelines(one, one)
    expect(drawn(two)).toEqual([
      'in: TableScan 200000>200000, FilterAndProject 200000>20000, TaskOutput 20000>20000 :out',
    ])
    expect(two[0]!.scheduledNanos).toBe(2 * one[0]!.scheduledNanos)
  })

  it('stay separate if their operators differ', async () => {
    const one = await pipelines(`SELECT json_array(id)::VARCHAR FROM ${orders} WHERE kind = 3`)
    const other = await pipelines(`SELECT '[1]'`)
    expect(addPipelines(one, other).map(({ pipelineId }) => pipelineId)).toEqual([0, 1])
    expect(addPipelines([], one)).toEqual(one)
  })
})
