import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { lakeConnector } from '../../../src/connectors/lake/lake-connector.ts'
import { changedRows, type PreparedWrite, type TableChange } from '../../../src/connectors/spi/table-writer.ts'
import { openDuckDb, type Rows } from '../../support/duckdb.ts'
import { FULL_TESTS } from '../../support/full-tests.ts'
import { inspectedBy } from '../../support/inspected-files.ts'
import { commitUntil } from '../../support/mortal-writer.ts'
import { column, tableWrites } from '../../support/table-writes.ts'
import { connectorContext } from '../../support/connector-context.ts'

/** For a longer search use another seed: `CHANGES_SEED=7`. */
const runs = Number(process.env['CHANGES_RUNS'] ?? (FULL_TESTS ? 200 : 12))
const seed = Number(process.env['CHANGES_SEED'] ?? 20261127)

const root = realpathSync(mkdtempSync(join(tmpdir(), 'quipu-dml-')))
afterAll(() => rmSync(root, { recursive: true }))
const duckdb = await openDuckDb()
const inspect = inspectedBy(duckdb)
const connector = lakeConnector.create('lake', { connector: 'lake', location: root }, connectorContext(root, inspect))
const writes = tableWrites(connector, duckdb)
const schema = 's'

const small = fc.integer({ min: 0, max: 6 })
const operation = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('insert' as const), rows: fc.integer({ min: 0, max: 20 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('delete' as const), modulus: fc.integer({ min: 1, max: 5 }), rest: small }) }, // prettier-ignore
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('update' as const), modulus: fc.integer({ min: 1, max: 5 }), rest: small }) }, // prettier-ignore
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('merge' as const), step: fc.integer({ min: 1, max: 4 }), count: fc.integer({ min: 0, max: 15 }) }) }, // prettier-ignore
  fc.constant({ kind: 'rewrite' as const }),
  fc.constant({ kind: 'truncate' as const }),
  fc.constant({ kind: 'rename' as const }),
  fc.constant({ kind: 'addColumn' as const }),
  fc.constant({ kind: 'dropColumn' as const }),
  fc.constant({ kind: 'renameColumn' as const }),
  fc.record({ kind: fc.constant('sweep' as const), hours: fc.constantFrom(1, 30) }),
)

type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never

/** The step of a commit before which its writer dies; 0: it lives. */
const fatal = fc.constantFrom(0, 0, 1, 3, 5, 7, 9, 12)

let counter = 0

/** The table of the connector, and a table of DuckDB with the same changes. */
class ChangedTable {
  table = `t${counter++}`
  readonly #model = `model_${this.table}`
  /** The columns besides `k`, an integer that all statements use. */
  #columns = ['a', 'b']
  #names = 0
  /** Versions that can be read, with what the model had then. */
  #past: { readonly version: number; readonly names: readonly string[]; readonly rows: Rows }[] = []

  async create(): Promise<void> {
    const columns = [column('k', 'integer'), column('a', 'varchar'), column('b', 'varchar')]
    await writes.write({ kind: 'createTable', schema, table: this.table, columns, replace: false })
    await duckdb.run(`CREATE TABLE ${this.#model} (k INTEGER, a VARCHAR, b VARCHAR)`)
  }

  /** @returns the change, and the statement that makes it in the model */
  async change(made: Exclude<Operation, { kind: 'sweep' }>): Promise<{
    readonly prepared: PreparedWrite
    readonly statement: string
    /** The count that the client gets; absent without one. */
    readonly count?: string
  }> {
    const { table } = this
    const named = { schema, table }
    const model = this.#model
    const all = ['k', ...this.#columns]
    const values = this.#values('i')
    switch (made.kind) {
      case 'insert': {
        const rows = `SELECT ${['i', ...values].join(', ')} FROM range(${made.rows}) r(i)`
        return { prepared: await writes.prepare({ kind: 'insert', ...named }, rows), statement: `INSERT INTO ${model} ${rows}` } // prettier-ignore
      }
      case 'delete': {
        const where = `k % ${made.modulus} = ${made.rest}`
        const prepared = await this.#rows('DELETE', (scan) => `SELECT "$file", "$row", false, NULL, ${all.map(() => 'NULL').join(', ')} FROM ${scan} WHERE ${where}`) // prettier-ignore
        return { prepared, statement: `DELETE FROM ${model} WHERE ${where}`, count: `SELECT count(*) FROM ${model} WHERE ${where}` } // prettier-ignore
      }
      case 'update': {
        const where = `k % ${made.modulus} = ${made.rest}`
        const set = all.map((name, index) => (index === all.length - 1 ? `concat(${name}, '!')` : name))
        if (all.length === 1) set[0] = 'k + 1'
        const prepared = await this.#rows('UPDATE', (scan) => `SELECT "$file", "$row", true, NULL, ${set.join(', ')} FROM ${scan} WHERE ${where}`) // prettier-ignore
        const last = all.at(-1)!
        return { prepared, statement: `UPDATE ${model} SET ${last} = ${set.at(-1)!} WHERE ${where}`, count: `SELECT count(*) FROM ${model} WHERE ${where}` } // prettier-ignore
      }
      case 'merge': {
        const source = `(SELECT i * ${made.step} AS i FROM range(${made.count}) r(i))`
        const order = [...all, '"$file"', '"$row"'].join(', ')
        const first = (scan: string): string =>
          `(SELECT * FROM ${scan} QUALIFY row_number() OVER (PARTITION BY k ORDER BY ${order}) = 1)`
        const prepared = await this.#rows(
          'MERGE',
          (scan) => `SELECT t."$file", t."$row", t."$row" IS NULL OR s.i % 2 = 0,
            CASE WHEN t."$row" IS NOT NULL THEN s.i % 2 END, ${['s.i', ...this.#values('s.i')].join(', ')}
            FROM ${source} AS s LEFT JOIN ${first(scan)} AS t ON t.k = s.i`,
        )
        return { prepared, statement: '' }
      }
      case 'rewrite': {
        const found = (await writes.table(schema, table))!
        const splits = await connector.listSplits({ ...found.handle, rewrite: true })
        const { scanText } = await import('../../../src/execution/engine/scan-text.ts')
        const rows = scanText(await connector.tableSource(splits, all))
        return { prepared: await writes.prepare({ kind: 'rewriteTable', ...named, version: found.version }, rows), statement: 'SELECT 1' } // prettier-ignore
      }
      case 'truncate':
        return {
          prepared: await writes.prepare({ kind: 'truncateTable', ...named }),
          statement: `DELETE FROM ${model}`,
        }
      case 'rename': {
        const to = `t${counter++}`
        const prepared = await writes.prepare({ kind: 'renameTable', ...named, to: { schema, table: to } })
        this.table = to
        return { prepared, statement: 'SELECT 1' }
      }
      case 'addColumn': {
        // A name that a dropped column may have had.
        const name = ['a', 'b', 'c', 'd'].find((one) => !this.#columns.includes(one)) ?? `e${this.#names++}`
        this.#columns.push(name)
        return this.#alter({ kind: 'add', column: column(name, 'varchar') }, `ADD COLUMN ${name} VARCHAR`)
      }
      case 'dropColumn': {
        const name = this.#columns.shift()
        if (name === undefined)
          return this.#alter({ kind: 'setType', column: 'k', type: 'integer' }, 'ALTER k TYPE INTEGER')
        return this.#alter({ kind: 'drop', column: name }, `DROP COLUMN ${name}`)
      }
      case 'renameColumn': {
        const name = this.#columns.pop()
        if (name === undefined)
          return this.#alter({ kind: 'setType', column: 'k', type: 'integer' }, 'ALTER k TYPE INTEGER')
        const to = `f${this.#names++}`
        this.#columns.push(to)
        return this.#alter({ kind: 'rename', column: name, to }, `RENAME COLUMN ${name} TO ${to}`)
      }
    }
  }

  async #alter(alteration: Extract<TableChange, { kind: 'alterColumns' }>['alteration'], text: string) {
    const prepared = await writes.prepare({ kind: 'alterColumns', schema, table: this.table, alteration })
    return { prepared, statement: `ALTER TABLE ${this.#model} ${text}` }
  }

  async #rows(made: 'DELETE' | 'UPDATE' | 'MERGE', rows: (scan: string) => string): Promise<PreparedWrite> {
    const found = (await writes.table(schema, this.table))!
    const scan = await writes.scanWithIds(found)
    const change = { kind: 'changeRows', schema, table: this.table, operation: made, version: found.version } as const
    return writes.prepare(change, rows(scan))
  }

  #values(number: string): string[] {
    return this.#columns.map((name) => `'${name}' || ${number}`)
  }

  /** The merge in the model: of several rows with one `k` it takes the first by all columns, as the other one does. */
  async mergeModel({ step, count }: { readonly step: number; readonly count: number }): Promise<void> {
    const model = this.#model
    const order = ['k', ...this.#columns, 'rowid'].join(', ')
    const source = `(SELECT i * ${step} AS i FROM range(${count}) r(i))`
    const first = `(SELECT k, rowid AS id FROM ${model} QUALIFY row_number() OVER (PARTITION BY k ORDER BY ${order}) = 1)`
    await duckdb.run(
      `CREATE OR REPLACE TEMP TABLE merged AS SELECT s.i, t.id FROM ${source} AS s LEFT JOIN ${first} AS t ON t.k = s.i`,
    )
    await duckdb.run(`DELETE FROM ${model} WHERE rowid IN (SELECT id FROM merged)`)
    const values = ['s.i', ...this.#values('s.i')].join(', ')
    await duckdb.run(`INSERT INTO ${model} SELECT ${values} FROM merged AS s WHERE id IS NULL OR i % 2 = 0`)
  }

  async check(): Promise<void> {
    const names = ['k', ...this.#columns]
    const found = (await writes.table(schema, this.table))!
    expect(found.columns.map(({ name }) => name)).toEqual(names)
    const model = await duckdb.query(`SELECT ${names.join(', ')} FROM ${this.#model} ORDER BY ALL`)
    expect(await writes.read(schema, this.table)).toEqual(model)
    expect(await connector.getStatistics(found.handle)).toMatchObject({ rows: model.length })
    for (const past of this.#past) {
      const at = { kind: 'version', version: String(past.version) } as const
      const older = (await connector.getTable(schema, this.table, at))!
      expect(older.columns.map((one) => one.name)).toEqual(past.names)
      expect(await writes.read(schema, older), `version ${past.version}`).toEqual(past.rows)
    }
    this.#past = [...this.#past.filter(({ version }) => version !== found.version), { version: found.version!, names, rows: model }] // prettier-ignore
  }

  /** Forgets the versions that a sweep removes. */
  async swept(): Promise<void> {
    const gone = this.#past.slice(0, -1)
    this.#past = this.#past.slice(-1)
    for (const { version } of gone) {
      const at = { kind: 'version', version: String(version) } as const
      await expect(connector.getTable(schema, this.table, at)).rejects.toMatchObject({ errorName: 'INVALID_ARGUMENTS' })
    }
  }

  count(sql: string): Promise<number> {
    return duckdb.query(`SELECT (${sql})::INTEGER AS n`).then(([row]) => row!['n'] as number)
  }
}

/** Commits in a writer that may die before a step; then another writer commits again, as a recovery does. */
async function commitOver(prepared: PreparedWrite, step: number): Promise<void> {
  await commitUntil(step, prepared, { location: root, inspect })
  await writes.writer.commit(prepared)
}

describe('Any sequence of changes of a table', () => {
  it(
    'gives the rows and counts of the same changes in DuckDB, in all kept versions, although committers die',
    async () => {
      await writes.write({ kind: 'createSchema', schema })
      const steps = fc.array(fc.tuple(operation, fatal), { minLength: 3, maxLength: 9 })
      await fc.assert(
        fc.asyncProperty(steps, async (sequence) => {
          const changed = new ChangedTable()
          await changed.create()
          for (const [made, step] of sequence) {
            if (made.kind === 'sweep') {
              await writes.writer.sweep({ now: Date.now() + made.hours * 3600_000, isOpen: () => false })
              if (made.hours > 24) await changed.swept()
            } else {
              const { prepared, statement, count } = await changed.change(made)
              if (count !== undefined) expect(changedRows(prepared.files)).toBe(await changed.count(count))
              if (made.kind === 'merge') {
                expect(changedRows(prepared.files)).toBe(made.count)
                await changed.mergeModel(made)
              } else await duckdb.run(statement)
              await commitOver(prepared, step)
            }
            await changed.check()
          }
        }),
        { numRuns: runs, seed, endOnFailure: true },
      )
    },
    120_000 + runs * 5000,
  )
})
