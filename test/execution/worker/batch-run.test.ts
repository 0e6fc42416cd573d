import { beforeEach, describe, expect, it } from 'vitest'
import type { Connector } from '../../../src/connectors/spi/connector.ts'
import type { Fragment } from '../../../src/execution/api/fragment.ts'
import { EngineLost, type EngineResult, type EngineStatement } from '../../../src/execution/engine/engine.ts'
import { runBatch, type BatchRun } from '../../../src/execution/worker/batch-run.ts'
import { deferred } from '../../../src/shared/deferred.ts'
import { EngineError } from '../../../src/shared/engine-error.ts'
import { taskId, type QueryId } from '../../../src/shared/ids.ts'

const fragment: Fragment = {
  sql: 'SELECT a AS c0 FROM "$s0"',
  scans: [{ catalog: 'lake', schema: 's', table: 't', handle: {}, columns: ['a'] }],
  output: [{ name: 'a', type: 'integer', typeSignature: {}, wire: 'c0' }],
  streams: true,
  ordered: false,
  estimate: { small: false },
  risky: false,
}
const batch = { batch: 0, splits: [{ scan: 0, catalog: 'lake', data: {} }] }
const changed = new EngineError('TRANSACTION_CONFLICT', 'changed')
const passes = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5))

// The test ends the file checks and the engine run, and reads from here what the engine and the sink received.
let checks: ReturnType<typeof deferred<void>>[]
let statement: EngineStatement | undefined
let canceled: boolean
let engine: ReturnType<typeof deferred<EngineResult>>
let listed: number[]

const connector = {
  tableSource: async () => [{ kind: 'empty', columns: [] }],
  verifySplits: () => {
    const check = deferred<void>()
    checks.push(check)
    return check.promise
  },
} as unknown as Connector

function run(): BatchRun {
  const cancel = (): void => {
    canceled = true
    engine.reject(new EngineError('USER_CANCELED', 'Query was canceled'))
  }
  return runBatch(
    {
      engines: {
        run: (reported) => {
          statement = reported
          return { done: engine.promise, cancel }
        },
      },
      catalogs: { names: () => ['lake'], get: () => connector },
      sink: {
        write: async () => {},
        remove: async () => {},
        list: async ({ token }) => void listed.push(token),
        room: () => undefined,
      },
      digester: { keyName: '', digest: () => ({ rows: 0, sum: '' }) as never },
      limits: { pageBytes: 4, pageMaxBytes: 100, inlineBytes: 100, attempts: 2, flushMs: 1, holdMs: 60_000 },
      now: () => 0,
    },
    {
      taskId: taskId('20261123_000000_00000_00001' as QueryId, 1, 0),
      fragment,
      batch,
      profile: false,
      digests: false,
      remainingMillis: undefined,
      bounds: undefined,
      onUsage: () => {},
      firstToken: 0,
      readyAt: 0,
    },
  )
}

function read(...rows: readonly string[]): void {
  const { output } = statement!
  if (output.kind !== 'stream') throw new Error('not streamed')
  for (const row of rows) void output.onRows(Buffer.from(row))?.catch(() => {})
}

const result = {
  rows: 2,
  startedAt: 0,
  wallNanos: 0,
  cpuNanos: 0,
  cpuExact: true,
  peakMemoryBytes: 0,
  spilledBytes: 0,
  enginePid: 1,
} satisfies EngineResult

describe('A batch run', () => {
  beforeEach(() => {
    checks = []
    statement = undefined
    canceled = false
    engine = deferred()
    listed = []
  })

  it('reads rows during the check of its files, and lists pages only after the check succeeds', async () => {
    const { done } = run()
    await expect.poll(() => checks.length).toBe(1)
    expect(statement).toBeDefined()
    read('[1],\n', '[2],\n', '[3],\n')
    await passes()
    expect(listed).toEqual([])
    checks[0]!.resolve()
    await expect.poll(() => listed.length).toBeGreaterThan(0)
    engine.resolve(result)
    await expect.poll(() => checks.length).toBe(2)
    checks[1]!.resolve()
    await done
    expect(canceled).toBe(false)
  })

  it('fails at once and lists no page if the check finds that the files changed', async () => {
    const { done } = run()
    await expect.poll(() => checks.length).toBe(1)
    read('[1],\n', '[2],\n', '[3],\n')
    checks[0]!.reject(changed)
    await expect(done).rejects.toBe(changed)
    expect(canceled).toBe(true)
    expect(listed).toEqual([])
  })

  it('reports changed files instead of the error that they cause in the engine', async () => {
    const { done } = run()
    await expect.poll(() => checks.length).toBe(1)
    engine.reject(new EngineError('HIVE_CANNOT_OPEN_SPLIT', 'No such file'))
    await passes()
    checks[0]!.reject(changed)
    await expect(done).rejects.toBe(changed)
  })

  it('fails with the error of the engine if the files did not change', async () => {
    const { done } = run()
    await expect.poll(() => checks.length).toBe(1)
    checks[0]!.resolve()
    const failed = new EngineError('DIVISION_BY_ZERO', 'Division by zero')
    engine.reject(failed)
    await expect.poll(() => checks.length).toBe(2)
    checks[1]!.resolve()
    await expect(done).rejects.toBe(failed)
  })

  it('fails without a second attempt if the files changed after the first check', async () => {
    const { done } = run()
    await expect.poll(() => checks.length).toBe(1)
    checks[0]!.resolve()
    await passes()
    engine.reject(new EngineLost('deadline', 'It never opened a pipe'))
    await expect.poll(() => checks.length).toBe(2)
    checks[1]!.reject(changed)
    await expect(done).rejects.toBe(changed)
    expect(checks.length).toBe(2)
  })

  it('does not list its last page if the files changed while it was read', async () => {
    const { done } = run()
    await expect.poll(() => checks.length).toBe(1)
    checks[0]!.resolve()
    read('[1],\n')
    engine.resolve(result)
    await expect.poll(() => checks.length).toBe(2)
    await passes()
    checks[1]!.reject(changed)
    await expect(done).rejects.toBe(changed)
    expect(listed).toEqual([])
  })

  it('ends on a cancel without waiting for the check of its files', async () => {
    const batchRun = run()
    await passes()
    batchRun.cancel()
    await expect(batchRun.done).rejects.toMatchObject({ errorName: 'USER_CANCELED' })
    expect(checks).toHaveLength(1)
  })

  it('ends on a cancel after the engine is done, while the check of its files still runs', async () => {
    const batchRun = run()
    await passes()
    engine.resolve({ rows: 1, overflow: false } as EngineResult)
    await passes()
    batchRun.cancel()
    await expect(batchRun.done).rejects.toMatchObject({ errorName: 'USER_CANCELED' })
    expect(listed).toEqual([])
  })
})
