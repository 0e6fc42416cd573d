import { z } from 'zod'
import type { QueryRows } from '../../events/projection.ts'
import { systemStream } from '../../coordinator/system/events.ts'
import { archivedTables, type ArchivedName } from './archived-tables.ts'

const fileSchema = z.object({
  rows: z.number().int(),
  /** Sum of the hashes of the rows' texts as Postgres makes them, whatever their order. */
  sum: z.string().regex(/^-?\d+$/),
  bytes: z.number().int(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})

/** What a period has of one table. */
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

/** Queries that ended after one another, and whose rows lie in a folder of files, one a table. Times are ISO UTC, ids ends of a range. */
export type QueriesPeriod = Readonly<z.infer<typeof periodSchema>>

/** The archive as it is at one moment of the database. */
export interface ArchivedQueries {
  readonly periods: readonly QueriesPeriod[]
  /** Queries whose data is forgotten, and still in files that are about to be written anew. */
  readonly forgotten: readonly string[]
}

const COLUMNS = Object.keys(periodSchema.shape).join(', ')

/** One statement: what is forgotten is so in the files, or told beside them. */
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

/** Whoever changes which files count; a rebuild too, which empties the table when it swaps the rows. */
export const LOCK_PERIODS = 'lock table quipu_log.query_periods in share row exclusive mode'
