// kill -9 of the coordinator with open queries: until a client is answered, and until all of them are taken over.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient, startServer } from './quipu-server.mjs'

const OPEN = (process.env.BENCH_OPEN ?? '10,100,1000').split(',').map(Number)
const KINDS = ['SELECT 1', 'SELECT * FROM lineitem', 'SELECT orderpriority, count(*) FROM orders GROUP BY 1']
const TICKS_PER_SECOND = 100

for (const open of OPEN) {
  const server = await startServer()
  const client = createClient(server.base)
  await client.rows('SELECT 1')
  const posted = await Promise.all(
    Array.from({ length: open }, (_, index) => client.send('POST', '/v1/statement', KINDS[index % KINDS.length])),
  )
  const coordinator = () => JSON.parse(readFileSync(join(server.dataDir, 'supervisor.json'), 'utf8')).children[0].pid
  const killed = coordinator()
  const start = performance.now()
  const seconds = () => ((performance.now() - start) / 1000).toFixed(2)
  process.kill(killed, 'SIGKILL')
  // A client that follows one of them, one with a new statement, and a look at the metrics.
  const follows = (async () => {
    const { nextUri } = JSON.parse(posted[1].body)
    for (const reader = createClient(server.base); ;) {
      const { body } = await reader.send('GET', new URL(nextUri).pathname)
      const { stats, data } = JSON.parse(body)
      if (stats.elapsedTimeMillis === 0 && !data) continue
      reader.close()
      return `an open query answered after ${seconds()} s`
    }
  })()
  const begins = (async () => {
    const fresh = createClient(server.base)
    await fresh.send('POST', '/v1/statement', 'SELECT 1')
    const posted = `a POST answered after ${seconds()} s`
    fresh.close()
    return `${posted} (${cpuOf(coordinator())} s of CPU)`
  })()
  const takenOver = (async () => {
    for (const looker = createClient(server.base); ; await new Promise((resolve) => setTimeout(resolve, 50))) {
      const { body } = await looker.send('GET', '/metrics')
      const [, duration] = /^quipu_recovery_duration_seconds(?:\{[^}]*\})? (\S+)$/m.exec(String(body)) ?? []
      if (duration === undefined || Number(duration) === 0) continue
      looker.close()
      return `all taken over after ${seconds()} s (${cpuOf(coordinator())} s of CPU)`
    }
  })()
  const results = await Promise.all([follows, begins, takenOver])
  console.log(`${open} queries posted, coordinator killed: ${results.join(', ')}`)
  client.close()
  await server.stop()
}

/** Seconds of CPU that a process has used, its engine not counted. */
function cpuOf(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return ((Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND).toFixed(2)
}
