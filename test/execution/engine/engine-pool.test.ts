import { mkdirSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openTestPool, type TestPool } from '../../support/engines.ts'

let engines: TestPool
beforeAll(async () => {
  engines = await openTestPool()
})
afterAll(async () => {
  await engines[Symbol.asyncDispose]()
})

/** Rows `[i,"i"]` for i below n. */
const numbers = (n: number): string => `SELECT json_array(i, i::VARCHAR)::VARCHAR FROM range(${n}) r(i)`

describe('The inline rows of a statement', () => {
  it('are returned in one buffer', async () => {
    expect(await engines.rows(numbers(3))).toEqual([
      [0, '0'],
      [1, '1'],
      [2, '2'],
    ])
  })

  it('are an empty buffer if the statement has no rows', async () => {
    const result = await engines.run(numbers(0)).done
    expect(result.inline).toEqual(Buffer.alloc(0))
    expect(result.rows).toBe(0)
  })

  it('are reported as an overflow above the limit, and the connection stays usable', async () => {
    const result = await engines.run(numbers(1_000_000)).done
    expect(result).toMatchObject({ overflow: true })
    expect(result.inline).toBeUndefined()
    expect(await engines.rows(numbers(1))).toHaveLength(1)
  })

  it('fail with DuckDB’s message if an error occurs after thousands of rows', async () => {
    const sql = `SELECT json_array(CASE WHEN i = 9000 THEN ('x' || i)::INTEGER ELSE 1 END)::VARCHAR FROM range(10000) r(i)`
    await expect(engines.run(sql).done).rejects.toThrow("Could not convert string 'x9000' to INT32")
  })

  it('fail with the begin and the end of a 10 MB error message, and other statements continue', async () => {
    const beside = engines.run(`SELECT json_array(count(*))::VARCHAR FROM range(30000000) r(i) WHERE i % 3 = 0`).done
    const failed = await engines.run(`SELECT json_array(repeat('x', 10000000)::INTEGER)::VARCHAR`).done.catch(String)
    expect(failed).toMatch(/Could not convert string 'x+…x+' to INT32/)
    expect((failed as string).length).toBeLessThan(300_000)
    expect((await beside).rows).toBe(1)
  })

  it('come from a cached prepared statement, even if other statements failed in between', async () => {
    for (let time = 0; time < 3; time++) {
      expect(await engines.rows(numbers(2), { cachePrepared: true })).toHaveLength(2)
      await expect(engines.run('SELECT nonsense').done).rejects.toThrow('nonsense')
    }
  })

  it('arrive for more concurrent statements than there are connections', async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, (_, index) => engines.rows(`SELECT '[${index}]'`)))
    expect(answers).toEqual(Array.from({ length: 50 }, (_, index) => [[index]]))
  })
})

describe('The streamed rows of a statement', () => {
  it('arrive as whole lines, each exactly once', async () => {
    const { text, result } = await engines.stream(numbers(1_000_000))
    expect(result.rows).toBe(1_000_000)
    const lines = text.split('\n')
    expect(lines.pop()).toBe('')
    expect(lines).toHaveLength(1_000_000)
    expect(new Set(lines).size).toBe(1_000_000)
    expect(lines).toContain('[999999,"999999"],')
  })

  it('keep the order of the ORDER BY', async () => {
    const { text } = await engines.stream(
      `SELECT json_array(i)::VARCHAR FROM (SELECT (i * 7919) % 500009 AS i FROM range(500009) r(i)) ORDER BY i`,
    )
    const values = JSON.parse(`[${text.trimEnd().slice(0, -1)}]`) as number[][]
    expect(values).toHaveLength(500_009)
    expect(values.every(([value], index) => value === index)).toBe(true)
  })

  it('are an empty text if the statement has no rows', async () => {
    const { text, result } = await engines.stream(numbers(0))
    expect(text).toBe('')
    expect(result.rows).toBe(0)
  })

  it('can contain a row of 20 MB', async () => {
    const { text } = await engines.stream(
      `SELECT json_array(repeat('x', 20000000 + i::INTEGER))::VARCHAR FROM range(1) r(i)`,
    )
    expect(text).toBe(`["${'x'.repeat(20_000_000)}"],\n`)
  })

  it('fail with DuckDB’s message if an error occurs midway, and the engine stays usable', async () => {
    const sql = `SELECT json_array(CASE WHEN i = 900000 THEN ('x' || i)::INTEGER ELSE 1 END)::VARCHAR FROM range(1000000) r(i)`
    await expect(engines.stream(sql)).rejects.toThrow("Could not convert string 'x900000' to INT32")
    expect((await engines.stream(numbers(2))).text.split('\n')).toHaveLength(3)
  })

  it('stop with the error of the consumer, and the engine stays usable', async () => {
    const output = {
      kind: 'stream',
      onRows: () => {
        throw new Error('no room')
      },
    } as const
    await expect(engines.run(numbers(1_000_000), { placement: 'dedicated', output }).done).rejects.toThrow('no room')
    expect((await engines.stream(numbers(2))).text.split('\n')).toHaveLength(3)
  })
})

describe('Questions about files', () => {
  it('return objects, or an error for a file that does not exist', async () => {
    mkdirSync(engines.data, { recursive: true })
    writeFileSync(`${engines.data}some.csv`, 'id,name\n1,a\n')
    const question = { kind: 'csvShape', path: `${engines.data}some.csv`, declared: {} } as const
    expect(await engines.pool.inspect(question)).toMatchObject([{ columns: [{ name: 'id' }, { name: 'name' }] }])
    const missing = { ...question, path: `${engines.data}none.csv` }
    await expect(engines.pool.inspect(missing)).rejects.toThrow('Error opening split none.csv: It does not exist')
  })
})

describe('The memory figure of the pool', () => {
  it('includes the memory of a busy engine', async () => {
    const held = async (): Promise<number> =>
      Object.values(await engines.pool.memory(60_000)).reduce((sum, bytes) => sum + bytes, 0)
    const before = await held()
    // A sort holds all rows in the engine until the consumer takes them.
    let taken!: () => void
    const waiting = new Promise<void>((resolve) => (taken = resolve))
    let busy = 0
    const output = {
      kind: 'stream',
      onRows: () => waiting,
    } as const
    const sql = `SELECT json_array(i, repeat('x', 100))::VARCHAR FROM range(500000) t(i) ORDER BY hash(i)`
    const run = engines.run(sql, { placement: 'dedicated', output })
    for (const until = performance.now() + 60_000; performance.now() < until && busy < before + 10_000_000;)
      busy = await held()
    expect(busy).toBeGreaterThan(before + 10_000_000)
    taken()
    await run.done
  })
})
