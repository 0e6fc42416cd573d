import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { appendLives, queryLife, testQueryId } from '../support/query-life.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { openReadModelBed, tableHashes } from '../support/read-models.ts'

let server: TestPostgres

beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server.stop())

function lives(count: number, from: number) {
  return Array.from({ length: count }, (_, index) => {
    const queryId = testQueryId(from + index)
    return { queryId, events: queryLife(queryId) }
  })
}

describe('A projection whose database is killed', () => {
  it('continues after the restart of the database, and makes the same rows', { timeout: 240_000 }, async () => {
    const bed = await openReadModelBed(server)
    try {
      const troubles: string[] = []
      const runner = await bed.startRunner({ maxBatch: 20, enough: 20, onTrouble: ({ kind }) => troubles.push(kind) })
      for (let round = 0; round < 3; round++) {
        const writing = appendLives(bed.log, lives(20, round * 100))
        await server.kill('SIGKILL')
        await server.start()
        await writing
      }
      expect(await runner.barrier(60_000)).toBe(true)
      await runner.stop()
      expect(troubles).toContain('retry')
      expect(troubles).not.toContain('dead_letter')
      const survived = await tableHashes(bed)
      expect(survived['queries']).toMatch(/^60 rows/)
      await bed.query(
        'truncate queries, stages, tasks, operators, nodes, clusters, table_access, audit_log, query_events, checkpoints, dead_letters',
      )
      const anew = await bed.startRunner()
      expect(await anew.barrier(60_000)).toBe(true)
      expect(await tableHashes(bed)).toEqual(survived)
    } finally {
      await bed.close()
    }
  })
})
