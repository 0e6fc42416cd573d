import type pg from 'pg'
import { hasSqlState } from './database-error.ts'

/** Number of positions in one partition of `events`. */
export const EVENTS_IN_PARTITION = 10_000_000n
const PAGE_PARTITION_MS = 600_000
const HOUSEKEEPING_EVERY_MS = 300_000
const LONGEST_QUERY_MS = 25 * 3_600_000

interface Queries {
  query(text: string): Promise<pg.QueryResult>
}

/** Makes the partition of `events` with this number, unless it exists. */
export async function makeEventPartition(sql: Queries, number: bigint): Promise<void> {
  const from = number * EVENTS_IN_PARTITION
  await attach(sql, 'events', `events_${number}`, `(${from}) to (${from + EVENTS_IN_PARTITION})`)
}

/** Makes the partitions of `result_pages` from ten minutes before to half an hour after an instant. */
export async function makePagePartitions(sql: Queries, now: number): Promise<void> {
  const first = Math.floor(now / PAGE_PARTITION_MS) - 1
  for (let index = first; index < first + 5; index++) {
    const [from, to] = [index, index + 1].map((each) => new Date(each * PAGE_PARTITION_MS).toISOString())
    try {
      await attach(sql, 'result_pages', `result_pages_${index}`, `('${from}') to ('${to}')`)
    } catch (error) {
      // After a jump of the clock, rows of this time may already be in the default partition. They can stay there.
      if (!hasSqlState(error, 'checkViolation')) throw error
    }
  }
}

/**
 * Drops the pages made before an instant, which no client can ask for any more.
 * @returns the number of dropped partitions
 */
export async function dropResultPages(sql: Queries, before: Date): Promise<number> {
  const { rows } = await sql.query(`select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'quipu_log.result_pages'::regclass and c.relname ~ '^result_pages_[0-9]+$'`)
  let dropped = 0
  for (const { name } of rows as { name: string }[]) {
    const end = (Number(name.slice('result_pages_'.length)) + 1) * PAGE_PARTITION_MS
    if (end > before.getTime()) continue
    // Must not make the writer wait behind this drop while a reader uses the table: rather drop later.
    await sql.query(`set local lock_timeout = '200ms'; drop table quipu_log.${name}`)
    dropped++
  }
  await sql.query(`delete from quipu_log.result_pages_other where created < '${before.toISOString()}'`)
  return dropped
}

/** Makes page partitions ahead and drops old ones, now and every few minutes. Does not keep the process alive. */
export function startPageHousekeeping(
  sql: Queries,
  options: {
    readonly now?: () => number
    readonly pagesNeededSince?: () => Date
    readonly onTrouble?: (error: Error) => void
  },
): { stop(): void } {
  const now = options.now ?? Date.now
  const round = async (): Promise<void> => {
    await makePagePartitions(sql, now())
    await dropResultPages(sql, options.pagesNeededSince?.() ?? new Date(now() - LONGEST_QUERY_MS))
  }
  const run = (): void => void round().catch((error: Error) => options.onTrouble?.(error))
  const timer = setInterval(run, HOUSEKEEPING_EVERY_MS).unref()
  run()
  return { stop: () => clearInterval(timer) }
}

/**
 * Creates a partition separately and attaches it: unlike creating it in place, this does not block readers and writers.
 */
async function attach(sql: Queries, parent: string, name: string, range: string): Promise<void> {
  const { rows } = await sql.query(
    `select 1 from pg_inherits where inhrelid = to_regclass('quipu_log.${name}') and inhparent = 'quipu_log.${parent}'::regclass`,
  )
  if (rows.length > 0) return
  try {
    await sql.query(`create table if not exists quipu_log.${name} (like quipu_log.${parent} including all)`)
  } catch (error) {
    // Another process makes it at the same time; Postgres reports this as a unique violation. The table now exists.
    if (!hasSqlState(error, 'uniqueViolation')) throw error
  }
  try {
    await sql.query(`alter table quipu_log.${parent} attach partition quipu_log.${name} for values from ${range}`)
  } catch (error) {
    // Another process was faster: the table is already a partition.
    if (!hasSqlState(error, 'wrongObjectType')) throw error
  }
}
