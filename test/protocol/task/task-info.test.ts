import { statSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { TaskStatus } from '../../../src/execution/api/task.ts'
import type { TaskInfo } from '../../../src/protocol/info/schemas/task.ts'
import { openDuckDb } from '../../support/duckdb.ts'
import { openTestWorker, statusHeaders, updateFor, type TestWorker } from '../../support/worker.ts'

const tiny = new URL('../../../etc/tpch/tiny', import.meta.url).pathname
const duckdb = await openDuckDb()

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const DURATION = /^\d+\.\d\d(ns|us|ms|s|m)$/
const SIZE = /^(\d+B|\d+\.\d\dkB)$/

/** `1.50ms` in nanoseconds. */
function nanos(text: string): number {
  const [, number, unit] = /^([\d.]+)(ns|us|ms|s|m)$/.exec(text)!
  return Number(number) * { ns: 1, us: 1e3, ms: 1e6, s: 1e9, m: 60e9 }[unit as 'ns']
}
function size(bytes: number): string {
  return bytes < 1024 ? `${bytes}B` : `${(bytes / 1024).toFixed(2)}kB`
}
/** Compressed bytes of columns, as the footer of the file states them. */
async function columnBytes(table: string, columns: readonly string[]): Promise<number> {
  const list = columns.map((column) => `'${column}'`).join(', ')
  const [sum] = await duckdb.query(
    `SELECT sum(total_compressed_size)::INT AS bytes FROM parquet_metadata('${tiny}/${table}.parquet') WHERE path_in_schema IN (${list})`,
  )
  return sum!.bytes as number
}

/** A grouped join of orders (15,000 rows) with the customers of one segment. Every figure has a known value. */
const JOIN = `SELECT c.mktsegment AS c0, count(*) AS c1, sum(o.totalprice) AS c2 FROM "$s0" o
  JOIN "$s1" c ON o.custkey = c.custkey WHERE c.mktsegment = 'BUILDING' GROUP BY 1`

describe('The task info of a join', () => {
  let worker: TestWorker
  let taskId: string
  let info: TaskInfo
  let status: TaskStatus
  let page: string
  const before = Date.now()

  beforeAll(async () => {
    worker = await openTestWorker({ postWaitMs: 60_000 })
    taskId = worker.nextTaskId()
    const update = await updateFor(
      [
        { connector: worker.tpch, schema: 'tiny', table: 'orders', columns: ['custkey', 'totalprice'] },
        { connector: worker.tpch, schema: 'tiny', table: 'customer', columns: ['custkey', 'mktsegment'] },
      ],
      JOIN,
      3,
      { estimate: { small: true } },
      { profile: true },
    )
    const posted = await worker.call('POST', `/v1/task/${taskId}`, { body: update })
    expect(posted.status).toBe(200)
    info = (await posted.json()) as TaskInfo
    status = (await (await worker.call('GET', `/v1/task/${taskId}`, { headers: statusHeaders })).json()) as TaskStatus
    page = await (await worker.call('GET', `/v1/task/${taskId}/results/0/0`)).text()
  })
  afterAll(() => worker[Symbol.asyncDispose]())

  it('names the task, its version, state and address', () => {
    expect(info.taskId).toBe(taskId)
    expect(info.version).toBe(status.version)
    expect(Number.isSafeInteger(info.version)).toBe(true)
    expect(info.state).toBe('FINISHED')
    expect(info.self).toBe(`${worker.url}/v1/task/${taskId}`)
    expect(info.lastHeartbeat).toMatch(ISO)
    expect(info.noMoreSplits).toEqual(['0', '1'])
    expect(info.failures).toEqual([])
    expect(info.outputs).toEqual({})
  })

  it('is the same in the answers of POST and GET, and names the task in the list', async () => {
    const alone = (await (await worker.call('GET', `/v1/task/${taskId}`)).json()) as TaskInfo
    expect({ ...alone, lastHeartbeat: '' }).toEqual({ ...info, lastHeartbeat: '' })
    const list = (await (await worker.call('GET', '/v1/task')).json()) as TaskInfo[]
    expect(list.map(({ taskId: id }) => id)).toEqual([taskId])
  })

  it('describes the output buffer', () => {
    expect(info.outputBuffers).toEqual({
      state: 'FLUSHING',
      masterSequenceId: 0,
      pagesAdded: 1,
      buffers: [{ bufferId: '0', finished: false, bufferedPages: 1, pagesSent: 0 }],
    })
  })

  it('has times in the right order', () => {
    const { createTime, startTime, endTime, elapsedTime, queuedTime } = info.stats
    for (const time of [createTime, startTime!, endTime!]) expect(time).toMatch(ISO)
    expect(Date.parse(createTime)).toBeGreaterThanOrEqual(before)
    expect(Date.parse(createTime)).toBeLessThanOrEqual(Date.parse(startTime!))
    expect(Date.parse(startTime!)).toBeLessThanOrEqual(Date.parse(endTime!))
    expect(nanos(elapsedTime)).toBe((Date.parse(endTime!) - Date.parse(createTime)) * 1e6)
    expect(nanos(queuedTime)).toBe((Date.parse(startTime!) - Date.parse(createTime)) * 1e6)
  })

  it('counts one driver for each pipeline, all completed', () => {
    const { stats } = info
    const pipelines = stats.pipelines.length
    expect([stats.totalDrivers, stats.queuedDrivers, stats.runningDrivers, stats.completedDrivers]).toEqual([
      pipelines,
      0,
      0,
      pipelines,
    ])
  })

  it('counts the input rows and the compressed bytes of the columns that the task reads', async () => {
    const orders = await columnBytes('orders', ['o_custkey', 'o_totalprice'])
    const customers = await columnBytes('customer', ['c_custkey', 'c_mktsegment'])
    expect(info.stats.rawInputPositions).toBe(16_500)
    expect(info.stats.rawInputDataSize).toBe(size(orders + customers))
    expect(info.stats.processedInputDataSize).toBe(size(orders + customers))
    const inputs = info.stats.pipelines.filter(({ inputPipeline }) => inputPipeline)
    expect(
      inputs.map(({ rawInputPositions, rawInputDataSize }) => [rawInputPositions, rawInputDataSize]).sort(),
    ).toEqual([
      [1500, size(customers)],
      [15_000, size(orders)],
    ])
    for (const { inputPipeline, rawInputPositions } of info.stats.pipelines) {
      if (!inputPipeline) expect(rawInputPositions).toBe(0)
    }
  })

  it('counts the rows that pass the filters of the scans', async () => {
    const [segment] = await duckdb.query(
      `SELECT count(*)::INT AS n FROM '${tiny}/customer.parquet' WHERE c_mktsegment = 'BUILDING'`,
    )
    const scans = info.stats.pipelines.flatMap(({ operatorSummaries }) =>
      operatorSummaries.filter(({ operatorType }) => /Scan/.test(operatorType)),
    )
    const customer = scans.find(({ inputPositions }) => inputPositions === 1500)!
    expect(customer.operatorType).toBe('ScanFilterAndProjectOperator')
    expect(customer.outputPositions).toBe(segment!.n)
    const sum = scans.reduce((total, { outputPositions }) => total + outputPositions, 0)
    expect(info.stats.processedInputPositions).toBe(sum)
  })

  it('counts the rows and bytes of the pages', () => {
    expect(JSON.parse(page)).toHaveLength(1)
    expect(info.stats.outputPositions).toBe(1)
    expect(info.stats.outputDataSize).toBe(`${page.length}B`)
    const output = info.stats.pipelines.filter(({ outputPipeline }) => outputPipeline)
    expect(output).toHaveLength(1)
    expect(output[0]).toMatchObject({ outputPositions: 1, outputDataSize: `${page.length}B` })
    const sink = output[0]!.operatorSummaries.at(-1)!
    expect(sink).toMatchObject({
      operatorType: 'TaskOutputOperator',
      inputPositions: 1,
      outputDataSize: `${page.length}B`,
    })
  })

  it('takes the CPU time of the engine process, which runs nothing else', () => {
    expect(info.stats.cpuExact).toBe(true)
    const cpu = nanos(info.stats.totalCpuTime)
    expect(cpu).toBe(nanos(durationOf(status.stats.cpuNanos)))
    expect(status.stats.cpuNanos).toBeGreaterThan(0)
    const shared = status.stats.pipelines.reduce((sum, { cpuNanos }) => sum + cpuNanos, 0)
    expect(Math.abs(shared - status.stats.cpuNanos)).toBeLessThan(10)
  })

  it('takes the scheduled time from the profiler, summed over pipelines', () => {
    expect(info.stats.profiled).toBe(true)
    const sum = status.stats.pipelines.reduce((total, { scheduledNanos }) => total + scheduledNanos, 0)
    expect(status.stats.scheduledNanos).toBeGreaterThan(0)
    expect(Math.abs(sum - status.stats.scheduledNanos) / status.stats.scheduledNanos).toBeLessThan(0.01)
    expect(info.stats.totalScheduledTime).toMatch(DURATION)
    expect(info.stats.totalBlockedTime).toMatch(DURATION)
  })

  it('shows no reserved memory after the end, and the peak memory', () => {
    expect(info.stats.memoryReservation).toBe('0B')
    expect(status.stats.peakMemoryBytes).toBeGreaterThan(0)
  })

  it('has separate pipelines for the build side and the probe side of the join', () => {
    const types = info.stats.pipelines.map(({ operatorSummaries }) => operatorSummaries.map((one) => one.operatorType))
    const build = types.find((operators) => operators.includes('HashBuilderOperator'))!
    const probe = types.find((operators) => operators.includes('LookupJoinOperator'))!
    expect(build).not.toBe(probe)
    expect(types.flat()).toContain('HashAggregationOperator')
    expect(info.stats.pipelines.map(({ pipelineId }) => pipelineId)).toEqual(types.map((_, index) => index))
  })

  it('has all fields of every pipeline', () => {
    for (const pipeline of info.stats.pipelines) {
      expect(pipeline).toMatchObject({ totalDrivers: 1, queuedDrivers: 0, runningDrivers: 0, completedDrivers: 1 })
      expect(pipeline.memoryReservation).toBe('0B')
      for (const text of [pipeline.totalScheduledTime, pipeline.totalCpuTime, pipeline.totalBlockedTime])
        expect(text).toMatch(DURATION)
      for (const text of [pipeline.rawInputDataSize, pipeline.processedInputDataSize, pipeline.outputDataSize])
        expect(text).toMatch(SIZE)
      expect(pipeline.processedInputPositions).toBeGreaterThanOrEqual(0)
      // There is one driver, so every percentile is its value.
      const { elapsedTime, queuedTime, drivers } = pipeline
      const value = elapsedTime.total
      expect(value).toBeGreaterThan(0)
      const percentiles = ['p01', 'p05', 'p10', 'p25', 'p50', 'p75', 'p90', 'p95', 'p99', 'min', 'max', 'total']
      const all = Object.fromEntries(percentiles.map((name) => [name, value]))
      expect(elapsedTime).toEqual({ maxError: 0, count: 1, ...all })
      expect(queuedTime).toMatchObject({ maxError: 0, count: 1 })
      expect(drivers).toHaveLength(1)
      expect(drivers[0]).toMatchObject({ batch: 0, totalCpuTime: pipeline.totalCpuTime })
    }
  })

  it('has all fields of every operator', () => {
    for (const { operatorSummaries } of info.stats.pipelines) {
      expect(operatorSummaries.map(({ operatorId }) => operatorId)).toEqual(operatorSummaries.map((_, index) => index))
      for (const operator of operatorSummaries) {
        for (const calls of [operator.addInputCalls, operator.getOutputCalls, operator.finishCalls]) {
          expect(calls).toBe(0)
        }
        for (const clock of [
          operator.addInputWall,
          operator.addInputCpu,
          operator.addInputUser,
          operator.getOutputUser,
          operator.finishWall,
          operator.finishCpu,
          operator.finishUser,
        ]) {
          expect(clock).toBe('0.00ns')
        }
        for (const clock of [operator.getOutputWall, operator.getOutputCpu, operator.blockedWall])
          expect(clock).toMatch(DURATION)
        for (const bytes of [operator.inputDataSize, operator.outputDataSize, operator.memoryReservation])
          expect(bytes).toMatch(SIZE)
        expect(operator.inputPositions).toBeGreaterThanOrEqual(0)
        expect(operator.outputPositions).toBeGreaterThanOrEqual(0)
        expect(operator.info).toBeUndefined()
      }
    }
  })

  it('shows input and output rows when the profiler is off', async () => {
    const scan = { connector: worker.tpch, schema: 'tiny', table: 'nation', columns: ['name'] }
    const update = await updateFor([scan], 'SELECT count(*) AS c0 FROM "$s0"', 1)
    const posted = await worker.call('POST', `/v1/task/${worker.nextTaskId()}`, { body: update })
    const { stats } = (await posted.json()) as TaskInfo
    expect(stats).toMatchObject({ profiled: false, totalDrivers: 1, completedDrivers: 1 })
    expect(stats.pipelines).toHaveLength(1)
    expect(stats.pipelines[0]).toMatchObject({ rawInputPositions: 25, outputPositions: 1, totalDrivers: 1 })
    expect(stats.pipelines[0]!.operatorSummaries).toMatchObject([
      { operatorType: 'ScanFilterAndProjectOperator', inputPositions: 25 },
      { operatorType: 'TaskOutputOperator', outputPositions: 1 },
    ])
  })
})

describe('The task info of batches', () => {
  it('sums over the batches, with one driver for each pipeline and batch', async () => {
    await using worker = await openTestWorker({ limits: { batchBytes: 1 } })
    const selects = [0, 1, 2].map((part) => `SELECT i AS id FROM range(${part * 1000}, ${part * 1000 + 1000}) t(i)`)
    const scan = await worker.lakeTable('t', selects, ['id'])
    const fragment = { streams: true, estimate: { small: false } }
    const update = await updateFor([scan], 'SELECT id AS c0 FROM "$s0" WHERE id % 2 = 0', 1, fragment, {
      profile: true,
    })
    const taskId = worker.nextTaskId()
    const { stats } = await worker.run(taskId, update)
    const [file] = update.splits
    const bytes = update.splits.reduce((sum, split) => sum + split.columnBytes!.id!, 0)
    expect(statSync(`${worker.lake}/${String(file!.data.file)}`).size).toBeGreaterThan(file!.bytes!)
    expect(stats).toMatchObject({
      rawInputPositions: 3000,
      rawInputBytes: bytes,
      outputPositions: 1500,
      totalDrivers: 3,
      completedDrivers: 3,
      completedSplits: 3,
    })
    expect(stats.pipelines).toHaveLength(1)
    const [pipeline] = stats.pipelines
    expect(pipeline!.drivers.map(({ batch }) => batch)).toEqual([0, 1, 2])
    expect(pipeline).toMatchObject({
      rawInputPositions: 3000,
      outputPositions: 1500,
      inputPipeline: true,
      outputPipeline: true,
    })
    const wall = pipeline!.drivers.reduce((sum, { elapsedNanos }) => sum + elapsedNanos, 0)
    expect(stats.wallNanos).toBe(wall)
  })

  it('takes the CPU time of the engine process when a batch is alone in its engine', async () => {
    await using worker = await openTestWorker()
    const scan = { connector: worker.tpch, schema: 'tiny', table: 'lineitem', columns: ['quantity', 'comment'] }
    const sql = `SELECT sum(length(repeat(comment, 3))) AS c0, max(sha256(comment)) AS c1 FROM "$s0"`
    const update = await updateFor([scan], sql, 2, { estimate: { small: true } })
    const cpuOf = async (): Promise<number> => {
      const { readFileSync } = await import('node:fs')
      const engine = worker.engines.pool.children().find(({ state }) => state !== 'spare')!
      const fields = readFileSync(`/proc/${engine.pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
      return (Number(fields[11]) + Number(fields[12])) * 10e6
    }
    await worker.run(worker.nextTaskId(), update)
    const start = await cpuOf()
    let cpu = 0
    for (let i = 0; i < 20; i++) {
      const { stats, failure } = await worker.run(worker.nextTaskId(), update)
      expect(failure).toBeUndefined()
      expect(stats.cpuExact).toBe(true)
      cpu += stats.cpuNanos
    }
    const used = (await cpuOf()) - start
    // The kernel counts in ticks of 10 ms, and the process does a little besides.
    expect(cpu).toBeGreaterThan(used * 0.5)
    expect(cpu).toBeLessThan(used + 20e6)
  })
})

function durationOf(value: number): string {
  for (const [unit, factor] of [
    ['m', 60e9],
    ['s', 1e9],
    ['ms', 1e6],
    ['us', 1e3],
  ] as const) {
    if (value >= factor) return `${(value / factor).toFixed(2)}${unit}`
  }
  return `${value.toFixed(2)}ns`
}
