import type { DuckDBConnection } from '@duckdb/node-api'
import { integer, sql, toText, type Sql } from '../duckdb/text/sql.ts'
import type { ListedQuery } from './replay-source.ts'

/** The queries to replay, in the order in which they run. Any number of them, in bounded memory. */
export interface ReplayPlan {
  readonly size: number
  /** Absent if the plan has no sample of fingerprints. */
  readonly coverage?: SampleCoverage
  queries(): AsyncGenerator<ListedQuery>
}

/** A sample of the statements of each fingerprint. */
export interface FingerprintSample {
  /** The most statements of a fingerprint. */
  readonly each: number
  /** The most statements of the sample; undefined: no limit. */
  readonly most: number | undefined
}

/** How much of the load a sample stands for. */
export interface SampleCoverage {
  readonly statements: number
  readonly fingerprints: number
  /** The number of fingerprints of all listed queries. */
  readonly allFingerprints: number
  /** The share of the CPU of all listed queries that is in fingerprints of the sample, from 0 to 1. */
  readonly share: number
  /** The same share for the first `FIRST_STATEMENTS` statements of the sample. */
  readonly firstShare: number
}

/** The number of statements that `firstShare` counts. */
export const FIRST_STATEMENTS = 100

const READ_AT_ONCE = 1000

/**
 * Plans the listed queries, the oldest first; with a sample, the representatives of each fingerprint, the most expensive
 * fingerprints first.
 * @param done the queries that were replayed before
 */
export async function planReplay(
  connection: DuckDBConnection,
  listed: AsyncIterable<ListedQuery>,
  done: AsyncIterable<{ readonly queryId: string }>,
  sample?: FingerprintSample,
): Promise<ReplayPlan> {
  await fill(connection, listed, done)
  if (sample) await chooseSample(connection, sample)
  const [from, order] = sample ? [sql`sampled`, sql`rank`] : [sql`listed`, sql`created, id`]
  await connection.run(
    toText(sql`CREATE TABLE planned AS
      SELECT row_number() OVER (ORDER BY ${order}) AS place, created, id FROM ${from} ANTI JOIN done USING (id)`),
  )
  const [size] = await firstRow(connection, sql`SELECT count(*) FROM planned`)
  return {
    size: Number(size),
    ...(sample && { coverage: await coverageOf(connection) }),
    async *queries() {
      for (let from = 1; from <= Number(size); from += READ_AT_ONCE) {
        const read = await connection.runAndReadAll(
          'SELECT id, created FROM planned WHERE place BETWEEN $from AND $to ORDER BY place',
          { from, to: from + READ_AT_ONCE - 1 },
        )
        for (const [id, created] of read.getRowsJS()) yield { queryId: String(id), createdAt: String(created) }
      }
    },
  }
}

async function fill(
  connection: DuckDBConnection,
  listed: AsyncIterable<ListedQuery>,
  done: AsyncIterable<{ readonly queryId: string }>,
): Promise<void> {
  // CPU in microseconds: sums of floating-point numbers would depend on the order of the rows, and with them the sample.
  await connection.run(`CREATE TABLE listed (created VARCHAR, id VARCHAR, fingerprint VARCHAR, cpu BIGINT);
    CREATE TABLE done (id VARCHAR)`)
  const listing = await connection.createAppender('listed')
  for await (const { createdAt, queryId, fingerprint, cpuMs = 0 } of listed) {
    listing.appendVarchar(createdAt)
    listing.appendVarchar(queryId)
    if (fingerprint === undefined) listing.appendNull()
    else listing.appendVarchar(fingerprint)
    listing.appendBigInt(BigInt(Math.round(cpuMs * 1000)))
    listing.endRow()
  }
  listing.closeSync()
  const doing = await connection.createAppender('done')
  for await (const { queryId } of done) {
    doing.appendVarchar(queryId)
    doing.endRow()
  }
  doing.closeSync()
}

/**
 * Makes the table `sampled`. The representatives of a fingerprint are its most expensive statement, the most recent one,
 * the median by CPU, and then the next expensive ones. The first representatives of all fingerprints come before the
 * second ones. Within each such round the fingerprints with the most CPU come first.
 */
async function chooseSample(connection: DuckDBConnection, { each, most }: FingerprintSample): Promise<void> {
  const limit = most === undefined ? sql`` : sql`LIMIT ${integer(most)}`
  await connection.run(
    toText(sql`CREATE TABLE sampled AS
      WITH ranked AS (
        SELECT *, sum(cpu) OVER f AS cost, count(*) OVER f AS runs,
          row_number() OVER (PARTITION BY fingerprint ORDER BY cpu DESC, id DESC) AS by_cost,
          row_number() OVER (PARTITION BY fingerprint ORDER BY created DESC, id DESC) AS by_time
        FROM listed WHERE fingerprint IS NOT NULL WINDOW f AS (PARTITION BY fingerprint)),
      numbered AS (
        SELECT *, row_number() OVER (PARTITION BY fingerprint ORDER BY
          CASE WHEN by_cost = 1 THEN 0 WHEN by_time = 1 THEN 1 WHEN by_cost = runs // 2 + 1 THEN 2 ELSE 3 END, by_cost
        ) AS number FROM ranked)
      SELECT created, id, fingerprint, cost,
        row_number() OVER (ORDER BY number, cost DESC, runs DESC, fingerprint) AS rank
      FROM numbered WHERE number <= ${integer(each)} ORDER BY rank ${limit}`),
  )
}

async function coverageOf(connection: DuckDBConnection): Promise<SampleCoverage> {
  const shareOf = (
    first: Sql,
  ) => sql`(SELECT coalesce(coalesce(sum(cost), 0) / nullif((SELECT sum(cpu) FROM listed), 0), 1)
    FROM (SELECT DISTINCT fingerprint, cost FROM sampled WHERE rank <= ${first}))`
  const [statements, fingerprints, all, share, firstShare] = await firstRow(
    connection,
    sql`SELECT count(*), count(DISTINCT fingerprint), (SELECT count(DISTINCT fingerprint) FROM listed),
      ${shareOf(sql`(SELECT max(rank) FROM sampled)`)}, ${shareOf(integer(FIRST_STATEMENTS))} FROM sampled`,
  )
  return {
    statements: Number(statements),
    fingerprints: Number(fingerprints),
    allFingerprints: Number(all),
    share: Number(share),
    firstShare: Number(firstShare),
  }
}

async function firstRow(connection: DuckDBConnection, query: Sql): Promise<readonly unknown[]> {
  return (await connection.runAndReadAll(toText(query))).getRowsJS()[0] ?? []
}
