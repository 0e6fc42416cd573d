import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { auditTable } from '../../src/readmodels/audit/projection.ts'
import { clustersTable } from '../../src/readmodels/clusters/projection.ts'
import { nodesTable } from '../../src/readmodels/nodes/projection.ts'
import { queryEventsTable } from '../../src/readmodels/query-events/table.ts'
import { tablesOfQueries } from '../../src/readmodels/queries/tables.ts'
import { defineTable, selected, splitColumn } from '../../src/readmodels/table.ts'
import { openReadModelBed, type ReadModelBed } from '../support/read-models.ts'

const tables = [...tablesOfQueries, nodesTable, clustersTable, auditTable, queryEventsTable]
/** The tables of the projection itself, which src/events writes. */
const ofProjections = ['checkpoints', 'dead_letters']

interface MadeColumn {
  readonly name: string
  readonly type: string
  readonly nullable: boolean
}

describe('The tables of the read models', () => {
  let bed: ReadModelBed
  beforeAll(async () => {
    bed = await openReadModelBed()
  })
  afterAll(() => bed.close())

  it('are the tables that the migrations create', async () => {
    const rows = await bed.query<{ name: string }>(
      `select relname as name from pg_class
       where relnamespace = 'm'::regnamespace and relkind in ('r', 'p') and not relispartition`,
    )
    expect(rows.map(({ name }) => name).sort()).toEqual([...tables.map(({ name }) => name), ...ofProjections].sort())
  })

  it.each(tables.map((table) => [table.name, table] as const))(
    'have the same columns and key as in the migrations: %s',
    async (name, { columns, key }) => {
      const made = await bed.query<MadeColumn & Record<string, unknown>>(
        `select attname as name, format_type(atttypid, null) as type, not attnotnull as nullable
         from pg_attribute where attrelid = 'm.${name}'::regclass and attnum > 0 and not attisdropped`,
      )
      const reported = Object.entries(columns).map(([column, declared]): MadeColumn => {
        const { type, nullable } = splitColumn(declared)
        return { name: column, type: type === 'timestamptz' ? 'timestamp with time zone' : type, nullable }
      })
      const byName = (a: MadeColumn, b: MadeColumn): number => (a.name < b.name ? -1 : 1)
      expect(reported.toSorted(byName)).toEqual(made.toSorted(byName))
      const keyed = await bed.query<{ name: string }>(
        `select attname as name from pg_index
         join pg_attribute on attrelid = indrelid and attnum = any(indkey)
         where indrelid = 'm.${name}'::regclass and indisprimary order by array_position(indkey::int2[], attnum)`,
      )
      expect(keyed.map((column) => column.name)).toEqual(key)
    },
  )

  const things = defineTable('things', ['id'], {
    id: 'text',
    size: 'bigint null',
    ratio: 'double precision',
    at: 'timestamptz null',
    more: 'jsonb null',
  })

  it('return the rows that were written', async () => {
    await bed.query('create table things (id text primary key, size bigint, ratio float8, at timestamptz, more jsonb)')
    const rows = [
      { id: 'full', size: 2 ** 40, ratio: 0.5, at: '2026-01-31T12:00:00.000Z', more: '{"a":[1,null]}' },
      { id: 'empty', size: null, ratio: 0, at: null, more: null },
    ]
    const write = things.upsert(rows)!
    await bed.query(write.text, [...write.values])
    const stored = await bed.query(`select ${selected(things.row)} from things order by id desc`)
    expect(stored.map((row) => things.row.parse(row))).toEqual(rows)
  })

  it('upsert by key, and the last row of equal keys wins', async () => {
    const row = { size: null, ratio: 1, at: null, more: null }
    const write = things.upsert([
      { ...row, id: 'twice', ratio: 1 },
      { ...row, id: 'twice', ratio: 2 },
      { ...row, id: 'full', ratio: 3 },
    ])!
    await bed.query(write.text, [...write.values])
    const kept = things.insert([{ ...row, id: 'full', ratio: 4 }])!
    await bed.query(kept.text, [...kept.values])
    expect(await bed.query(`select id, ratio from things order by id`)).toEqual([
      { id: 'empty', ratio: 0 },
      { id: 'full', ratio: 3 },
      { id: 'twice', ratio: 2 },
    ])
    expect(things.upsert([])).toBeUndefined()
  })
})
