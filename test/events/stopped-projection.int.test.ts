import { expect, it } from 'vitest'
import { ProjectionStore } from '../../src/events/projection-store.ts'
import { READ_MODELS } from '../../src/readmodels/projection.ts'
import { appendLives, queryLife, testQueryId } from '../support/query-life.ts'
import { openReadModelBed } from '../support/read-models.ts'

it('A projection process that stops within its commit blocks its successor only for seconds', async () => {
  const bed = await openReadModelBed()
  try {
    const runner = await bed.startRunner()
    const stopped = await ProjectionStore.connect(bed.config, 'm', READ_MODELS)
    await stopped.query('begin', [])
    await stopped.query('update checkpoints set updated_at = now()', [])
    // The stopped projection holds the lock on the row of the checkpoint.
    const queryId = testQueryId(1)
    await appendLives(bed.log, [{ queryId, events: queryLife(queryId) }])
    expect(await runner.barrier(40_000)).toBe(true)
    expect(await bed.query('select query_id from m.queries')).toEqual([{ query_id: queryId }])
    await expect(stopped.query('commit', [])).rejects.toThrow()
    await stopped.close()
  } finally {
    await bed.close()
  }
})
