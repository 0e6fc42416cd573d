import { describe, expect, it } from 'vitest'
import { openTestWorker, updateFor } from '../../support/worker.ts'

describe('a task', () => {
  it('gives the rows of an aggregation', async () => {
    await using worker = await openTestWorker()
    const taskId = worker.nextTaskId()
    const status = await worker.run(
      taskId,
      await updateFor(
        [{ connector: worker.tpch, schema: 'tiny', table: 'orders', columns: ['orderstatus'] }],
        'SELECT orderstatus AS c0, count(*) AS c1 FROM "$s0" GROUP BY 1 ORDER BY 1',
        2,
      ),
    )
    expect(status).toMatchObject({ state: 'FINISHED', batchesDone: [0], batchesTotal: 1 })
    expect(await worker.rows(taskId)).toEqual([
      ['F', 7304],
      ['O', 7333],
      ['P', 363],
    ])
    console.log(JSON.stringify(status))
  })
})
