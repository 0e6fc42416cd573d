import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { lakeConnector } from '../../../../src/connectors/lake/lake-connector.ts'
import type { Connector } from '../../../../src/connectors/spi/connector.ts'
import type { TableChange, WriteTarget } from '../../../../src/connectors/spi/table-writer.ts'
import { createMetadataPort } from '../../../../src/coordinator/dispatch/catalog-metadata.ts'
import { createWriteGuard } from '../../../../src/coordinator/query/execution/write-guard.ts'
import { carryOutWrite, type WriteDeps } from '../../../../src/coordinator/query/execution/write-statement.ts'
import { createStatementPlanner } from '../../../../src/planner/statement-planner.ts'
import { duckdbTypeOf } from '../../../../src/processes/connector-factories.ts'
import { parseNodeId } from '../../../../src/shared/ids.ts'
import { openDuckDb } from '../../../support/duckdb.ts'
import { inspectedBy } from '../../../support/inspected-files.ts'
import { planText } from '../../../support/plan-text.ts'
import { recordedSession } from '../../../support/sql/fixed-metadata.ts'
import { createStageBed } from '../../../support/stage-bed.ts'
import { column, tableWrites } from '../../../support/table-writes.ts'

const root = realpathSync(mkdtempSync(join(tmpdir(), 'quipu-begin-')))
afterAll(() => rmSync(root, { recursive: true }))
const duckdb = await openDuckDb()
const planner = createStatementPlanner()
const folders = { dataDir: root, tablesDir: root, shippedDir: root, catalogDir: root }
const session = recordedSession({ catalog: 'lake', schema: 's' })

/** Stops a statement that has begun its write. */
class Begun extends Error {
  readonly target: WriteTarget

  constructor(target: WriteTarget) {
    super('begun')
    this.target = target
  }
}

/** A lake with the tables s.t(a, b) and s.u(a, b), each of one row, and r.t(a, b). */
async function lake() {
  const location = mkdtempSync(join(root, 'lake-'))
  const context = { ...folders, inspect: inspectedBy(duckdb), duckdbType: duckdbTypeOf }
  const connector = lakeConnector.create('lake', { connector: 'lake', location }, context)
  const writes = tableWrites(connector, duckdb)
  const columns = [column('a', 'integer'), column('b', 'varchar')]
  for (const schema of ['s', 'r']) {
    await writes.write({ kind: 'createSchema', schema })
    for (const table of schema === 's' ? ['t', 'u'] : ['t'])
      await writes.write({ kind: 'createTable', schema, table, columns, replace: false }, `SELECT 1, '${schema}'`)
  }
  return { connector, writes }
}

/**
 * Analyzes a statement and begins its write.
 * @param between called before each beginning
 */
async function begin(connector: Connector, sql: string, between: () => Promise<void>) {
  const writer = connector.writer!
  const paused: Connector = {
    ...connector,
    writer: {
      ...writer,
      async begin(...parameters) {
        await between()
        throw new Begun(await writer.begin(...parameters))
      },
    },
  }
  const bed = await createStageBed()
  const catalogs = { names: () => ['lake'], get: () => paused }
  const guard = createWriteGuard()
  guard.open()
  const deps: WriteDeps = {
    ...bed.deps,
    catalogs,
    guard,
    nodeId: parseNodeId('coordinator'),
    selfUrl: 'http://c',
    onInternalError: () => {},
  }
  let analyses = 0
  const again = async () => {
    analyses++
    const analyzed = await planText(planner, sql, session, createMetadataPort(catalogs))
    if (analyzed.kind !== 'write') throw new Error(`${sql} is ${analyzed.kind}`)
    return analyzed
  }
  const outcome = await carryOutWrite(deps, bed.run, { analyzed: await again(), analysisNanos: 0, again }).then(
    () => undefined,
    (error: unknown) => error,
  )
  return { analyses, outcome, target: outcome instanceof Begun ? outcome.target : undefined }
}

/** Makes the changes once. */
function once(write: (change: TableChange) => Promise<void>, changes: readonly TableChange[]): () => Promise<void> {
  const left = [...changes]
  return async () => {
    for (const change of left.splice(0)) await write(change)
  }
}

const table = (name: string, schema = 's') => ({ schema, table: name })
const rename = (from: string, to: string) => ({ kind: 'renameTable', ...table(from), to: table(to) }) as const
const swaps: Readonly<Record<string, readonly TableChange[]>> = {
  'two tables exchange their names': [rename('t', 'x'), rename('u', 't'), rename('x', 'u')],
  'two schemas exchange their names': [
    { kind: 'renameSchema', schema: 's', to: 'x' },
    { kind: 'renameSchema', schema: 'r', to: 's' },
    { kind: 'renameSchema', schema: 'x', to: 'r' },
  ],
  'another table gets the name': [
    { kind: 'dropTable', ...table('t') },
    { kind: 'createTable', ...table('t'), columns: [column('a', 'integer'), column('b', 'varchar')], replace: false },
  ],
}
const statements = [
  'DELETE FROM t WHERE a = 1',
  `UPDATE t SET b = 'n'`,
  'MERGE INTO t USING (VALUES 1) v(k) ON a = k WHEN MATCHED THEN DELETE',
  'ALTER TABLE t EXECUTE optimize',
  `INSERT INTO t VALUES (2, 'n')`,
]

describe('A write that was analyzed before its table changed', () => {
  const cases = Object.keys(swaps).flatMap((change) => statements.map((sql) => ({ change, sql })))

  it.each(cases)('is analyzed again on the table that has the name: $sql, $change', async ({ change, sql }) => {
    const { connector, writes } = await lake()
    const { analyses, target } = await begin(connector, sql, once(writes.write, swaps[change]!))
    const now = (await writes.table('s', 't'))!
    expect(analyses).toBe(2)
    expect(target).toMatchObject({ tableId: now.id, baseVersion: now.version })
    if (target!.change.kind !== 'insert') expect(target!.change).toMatchObject({ version: now.version })
  })

  it('fails after three analyses if another table has the name each time', async () => {
    const { connector, writes } = await lake()
    const swap = async (): Promise<void> => {
      for (const change of swaps['two tables exchange their names']!) await writes.write(change)
    }
    const { analyses, outcome } = await begin(connector, statements[0]!, swap)
    expect(analyses).toBe(3)
    expect(outcome).toMatchObject({ errorName: 'TRANSACTION_CONFLICT' })
  })

  const alter = (alteration: Extract<TableChange, { kind: 'alterColumns' }>['alteration']): readonly TableChange[] => [
    { kind: 'alterColumns', ...table('t'), alteration },
  ]

  it('never inserts values for a column that is dropped', async () => {
    const { connector, writes } = await lake()
    const { outcome } = await begin(
      connector,
      `INSERT INTO t VALUES (2, 'n')`,
      once(writes.write, alter({ kind: 'drop', column: 'b' })),
    )
    expect(outcome).toMatchObject({ errorName: 'TYPE_MISMATCH' })
  })

  it('inserts rows with all columns after a column is added', async () => {
    const { connector, writes } = await lake()
    const added = alter({ kind: 'add', column: column('c', 'bigint'), position: { first: true } })
    const { analyses, target } = await begin(connector, `INSERT INTO t (a, b) VALUES (2, 'n')`, once(writes.write, added)) // prettier-ignore
    expect(analyses).toBe(2)
    expect(target!.columns.map(({ name }) => name)).toEqual(['c', 'a', 'b'])
  })

  it('is not analyzed again for an insert when rows of the table are changed', async () => {
    const { connector, writes } = await lake()
    const between = async (): Promise<void> => {
      const { version, ...found } = (await writes.table('s', 't'))!
      const scan = await writes.scanWithIds(found)
      const change = { kind: 'changeRows', ...table('t'), operation: 'DELETE', version } as const
      await writes.write(change, `SELECT "$file", "$row", false, NULL, NULL, NULL FROM ${scan}`)
    }
    const { analyses, target } = await begin(connector, `INSERT INTO t VALUES (2, 'n')`, between)
    expect(analyses).toBe(1)
    expect(target).toBeDefined()
  })
})
