import type { DuckDBConnection } from '@duckdb/node-api'
import type { ListedQuery } from './replay-source.ts'

/** The queries to replay, oldest first. Any number of them, in bounded memory. */
export interface ReplayPlan {
  readonly size: number
  queries(): AsyncGenerator<ListedQuery>
}

const READ_AT_ONCE = 1000

/** @param done the queries that were replayed before */
export async function planReplay(
  connection: DuckDBConnection,
  listed: AsyncIterable<ListedQuery>,
  done: AsyncIterable<{ readonly queryId: string }>,
): Promise<ReplayPlan> {
  await connection.run('CREATE TABLE listed (created VARCHAR, id VARCHAR); CREATE TABLE done (id VARCHAR)')
  const listing = await connection.createAppender('listed')
  for await (const { createdAt, queryId } of listed) {
    listing.appendVarchar(createdAt)
    listing.appendVarchar(queryId)
    listing.endRow()
  }
  listing.closeSync()
  const doing = await connection.createAppender('done')
  for await (const { queryId } of done) {
    doing.appendVarchar(queryId)
    doing.endRow()
  }
  doing.closeSync()
  await connection.run(`CREATE TABLE planned AS
    SELECT row_number() OVER (ORDER BY created, id) AS place, created, id FROM listed ANTI JOIN done USING (id)`)
  const [size] = (await connection.runAndReadAll('SELECT count(*) FROM planned')).getRowsJS()[0] ?? []
  return {
    size: Number(size),
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
