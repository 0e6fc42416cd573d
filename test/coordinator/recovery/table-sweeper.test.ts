import { parseQueryId, type QueryId } from '../../../src/shared/ids.ts'
import { mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { lakeConnector } from '../../../src/connectors/lake/lake-connector.ts'
import { createCatalogs } from '../../../src/connectors/spi/catalog-files.ts'
import type { Connector } from '../../../src/connectors/spi/connector.ts'
import type { PreparedWrite } from '../../../src/connectors/spi/table-writer.ts'
import { createTableSweeper, type TableSweeperDeps } from '../../../src/coordinator/recovery/table-sweeper.ts'
import { column, filesBelow } from '../../support/table-writes.ts'
import { connectorContext } from '../../support/connector-context.ts'

const HOUR = 3600 * 1000
const root = realpathSync(mkdtempSync(join(tmpdir(), 'quipu-sweeper-')))
afterAll(() => rmSync(root, { recursive: true }))

function lake() {
  const location = mkdtempSync(join(root, 'lake-'))
  const connector = lakeConnector.create(
    'lake',
    { connector: 'lake', location },
    connectorContext(root, () => Promise.resolve([])),
  )
  const writer = connector.writer!
  return {
    connector,
    writer,
    data: () => filesBelow(location).filter((path) => path.includes('_data')),
    async prepare(queryId: QueryId, table: string): Promise<PreparedWrite> {
      const columns = [column('a', 'bigint')]
      const target = await writer.begin(queryId, { kind: 'createTable', schema: 's', table, columns, replace: false })
      const path = join(await writer.openAttempt(target, 'x'), 'f.parquet')
      writeFileSync(path, table)
      const files = await writer.sealAttempt(target, 'x', [{ path, rows: 1, bytes: statSync(path).size }])
      return writer.prepare(target, files)
    },
  }
}

function sweeper(
  deps: Pick<TableSweeperDeps, 'catalogs' | 'openQueries'> & { readonly later: number },
  rewrite: TableSweeperDeps['rewrite'] = () => Promise.resolve(),
): ReturnType<typeof createTableSweeper> & {
  readonly swept: unknown[]
  readonly troubles: unknown[]
  readonly rewritten: unknown[]
} {
  const swept: unknown[] = []
  const troubles: unknown[] = []
  const rewritten: unknown[] = []
  const made = createTableSweeper({
    ...deps,
    clock: { now: () => Date.now() + deps.later, monotonicMs: () => performance.now() },
    onSwept: (catalog, { filesRemoved }) => swept.push([catalog, filesRemoved]),
    onTrouble: (catalog) => troubles.push(catalog),
    rewrite(table) {
      rewritten.push(table)
      return rewrite(table)
    },
  })
  onTestFinished(() => made.stop())
  return { ...made, swept, troubles, rewritten }
}

const idOf = (number: number): QueryId => parseQueryId(`20260101_000000_0000${number}_00001`)
const [SETUP, LOST, OPEN, DONE] = [idOf(0), idOf(1), idOf(2), idOf(3)]

describe('The sweeper of tables', () => {
  it('removes files of lost attempts, and keeps files that an open query may still commit', async () => {
    const { connector, writer, data, prepare } = lake()
    await writer.commit(await writer.prepare(await writer.begin(SETUP, { kind: 'createSchema', schema: 's' }), []))
    await prepare(LOST, 'a')
    const open = await prepare(OPEN, 'b')
    await writer.commit(await prepare(DONE, 'c'))
    const catalogs = createCatalogs(new Map([['lake', connector]]))
    const createdAt = new Date(Date.now() - HOUR).toISOString()
    const { sweep, swept, troubles } = sweeper({
      catalogs,
      later: 30 * HOUR,
      openQueries: () => [{ queryId: OPEN, createdAt }],
    })
    await sweep()
    expect({ swept, troubles }).toEqual({ swept: [['lake', 1]], troubles: [] })
    expect(data()).toEqual([`s/b/_data/${OPEN}/x/f.parquet`, `s/c/_data/${DONE}/x/f.parquet`])
    expect(await writer.commit(open)).toMatchObject({ changed: true })
  })

  it('removes nothing while the open queries are unknown', async () => {
    const { connector, writer, data, prepare } = lake()
    await writer.commit(await writer.prepare(await writer.begin(SETUP, { kind: 'createSchema', schema: 's' }), []))
    await prepare(LOST, 'a')
    const { sweep, swept } = sweeper({
      catalogs: createCatalogs(new Map([['lake', connector]])),
      later: 30 * HOUR,
      openQueries: () => undefined,
    })
    await sweep()
    expect(swept).toEqual([])
    expect(data()).toHaveLength(1)
  })

  it('sweeps the next catalog when one fails', async () => {
    const broken = lake()
    const good = lake()
    const writer = { ...broken.writer, sweep: () => Promise.reject(new Error('the disk is gone')) }
    const catalogs = createCatalogs(
      new Map([
        ['broken', { ...broken.connector, writer }],
        ['good', good.connector],
      ]),
    )
    const { sweep, swept, troubles } = sweeper({ catalogs, later: 0, openQueries: () => [] })
    await sweep()
    expect({ swept, troubles }).toEqual({ swept: [['good', 0]], troubles: ['broken'] })
  })

  it('rewrites the tables that the sweep reports, and continues with other catalogs when that fails', async () => {
    const report = { filesRemoved: 0, bytesRemoved: 0, worthRewriting: [{ schema: 's', table: 't' }] }
    const reporting = { writer: { sweep: () => Promise.resolve(report) } } as unknown as Connector
    const catalogs = createCatalogs(new Map([['one', reporting], ['two', reporting]])) // prettier-ignore
    const { sweep, rewritten, troubles } = sweeper({ catalogs, later: 0, openQueries: () => [] }, (table) =>
      table.catalog === 'one' ? Promise.reject(new Error('refused')) : Promise.resolve(),
    )
    await sweep()
    expect(rewritten).toEqual(['one', 'two'].map((catalog) => ({ catalog, schema: 's', table: 't' })))
    expect(troubles).toEqual(['one'])
  })
})
