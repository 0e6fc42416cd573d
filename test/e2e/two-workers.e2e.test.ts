import { afterAll, beforeAll, expect, it } from 'vitest'
import { spawnQuipu, temporaryFolder, waitUntil, type QuipuProcess } from '../support/quipu-process.ts'
import { run } from '../support/statement-client.ts'

let folder: ReturnType<typeof temporaryFolder>
let quipu: QuipuProcess
let url: string
beforeAll(async () => {
  folder = temporaryFolder()
  quipu = spawnQuipu(['start', '--port', '0', '--workers', '2', '--data-dir', folder.path])
  url = await quipu.url
})
afterAll(async () => {
  quipu?.signal('SIGTERM')
  await quipu?.exit
  await folder.remove()
})

const rows = async (sql: string): Promise<readonly (readonly unknown[])[]> => (await run(url, sql)).rows

it('statements go to both of two workers, one after the other and at once', { timeout: 240_000 }, async () => {
  await waitUntil('both are active', async () => {
    const nodes = await rows("SELECT count(*) FROM system.runtime.nodes WHERE state = 'active' AND NOT coordinator")
    return nodes[0]?.[0] === 2
  })
  const count = 'SELECT count(*) FROM tpch.tiny.orders'
  for (let statement = 0; statement < 6; statement++) expect(await rows(count)).toEqual([[15_000]])
  await Promise.all(Array.from({ length: 6 }, async () => expect(await rows(count)).toEqual([[15_000]])))
  const tasks = await rows(
    `SELECT t.node_id, count(*) FROM system.runtime.tasks t JOIN system.runtime.queries q ON t.query_id = q.query_id
     WHERE q.query = '${count}' AND t.stage_id LIKE '%.1' GROUP BY 1 ORDER BY 1`,
  )
  const counts = tasks.map(([, each]) => Number(each))
  expect(counts).toHaveLength(2)
  expect(counts.reduce((sum, each) => sum + each, 0)).toBe(12)
  expect(Math.min(...counts)).toBeGreaterThanOrEqual(3)
})
