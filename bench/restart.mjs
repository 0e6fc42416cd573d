// kill -9 of the coordinator with open queries: until /v1/info answers, and until a statement is answered.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient, startServer } from './quipu-server.mjs'

const OPEN = (process.env.BENCH_OPEN ?? '10,100,1000').split(',').map(Number)

for (const open of OPEN) {
  const server = await startServer()
  const client = createClient(server.base)
  await client.rows('SELECT 1')
  const kinds = ['SELECT 1', 'SELECT * FROM lineitem', 'SELECT orderpriority, count(*) FROM orders GROUP BY 1']
  await Promise.all(
    Array.from({ length: open }, (_, index) => client.send('POST', '/v1/statement', kinds[index % kinds.length])),
  )
  const state = JSON.parse(readFileSync(join(server.dataDir, 'supervisor.json'), 'utf8'))
  const start = performance.now()
  process.kill(state.children[0].pid, 'SIGKILL')
  const fresh = createClient(server.base)
  await fresh.rows('SELECT 1')
  console.log(
    `${open} queries posted, coordinator killed: first answer after ${((performance.now() - start) / 1000).toFixed(2)} s`,
  )
  client.close()
  fresh.close()
  await server.stop()
}
