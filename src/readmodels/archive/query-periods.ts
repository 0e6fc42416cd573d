import { z } from 'zod'
import type { QueryRows } from '../../events/projection.ts'
import { systemStream } from '../../coordinator/system/events.ts'
import { archivedTables, type ArchivedName } from './archived-tables.ts'

const fileSchema = z.object({
  rows: z.number().int(),
  /** Sum of the hashes of the rows' texts as Postgres computes them, independent of their order. */
  sum: z.string().regex(/^-?\d+$/),
  bytes: z.number().int(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})

/** A table's file of a period. */
export type PeriodFile = Readonly<z.infer<typeof fileSchema>>

const names = archivedTables.map(({ name }) => name) as [ArchivedName, ...ArchivedName[]]

const time = z.date().transform((value) => value.toISOString())

const periodSchema = z.object({
  number: z.coerce.number(),
  folder: z.string().regex(/^[\w-]+$/),
  queries: z.coerce.number(),
  created_from: time,
  created_to: time,
  ended_from: time,
  ended_to: time,
  first_id: z.string(),
  last_id: z.string(),
  tables: z.record(z.enum(names), fileSchema),
})

/**
 * A period: queries in the order of their end, with their rows in a folder of files, one file per table. Times are ISO
 * UTC; ids are the bounds of a range.
 */
export type QueriesPeriod = Readonly<z.infer<typeof periodSchema>>

/** The archive at one moment of the database. */
export interface ArchivedQueries {
  readonly periods: readonly QueriesPeriod[]
  /** Queries whose data is forgotten but still in files, which will be rewritten. */
  readonly forgotten: readonly string[]
}

const COLUMNS = Object.keys(periodSchema.shape).join(', ')

/** One statement, so that forgotten data is either gone from the files or named beside them. */
const READ = `select ${COLUMNS}, (
    select coalesce(json_agg(distinct a.details->>'stream'), '[]') from audit_log a
    where a.stream = '${systemStream}' and a.kind = 'DataForgotten'
      and a.sequence > (select sequence from quipu_log.queries_forgotten)) as forgotten
  from quipu_log.query_periods order by number`

const rowSchema = periodSchema.extend({ forgotten: z.array(z.string()) })

export async function readArchivedQueries(query: QueryRows): Promise<ArchivedQueries> {
  const rows = (await query(READ, [])).map((row) => rowSchema.parse(row))
  return { periods: rows.map(({ forgotten: _, ...period }) => period), forgotten: rows[0]?.forgotten ?? [] }
}

/** File of a table within a period's folder. */
export function fileOf(name: ArchivedName): string {
  return `${name}.parquet`
}

/** Lock for changing which files count; also for a rebuild, which empties the table when it swaps the rows. */
export const LOCK_PERIODS = 'lock table quipu_log.query_periods in share row exclusive mode'
