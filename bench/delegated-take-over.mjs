// kill -9 of the coordinator with open delegated queries, whose clients all wait for an answer: until the next
// coordinator has answered the first client, and all clients.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ENDLESS, startFakeTrino } from './fake-trino.mjs'
import { SOURCE, startGateway } from './gateway.mjs'
import { cpuByKind, createClient } from './quipu-server.mjs'

const OPEN = Number(process.env.BENCH_OPEN ?? 100)

const cluster = await startFakeTrino(ENDLESS)
// One user never has all slots.
const server = await startGateway(cluster, { QUIPU_RUNNING_QUERIES: String(10 * OPEN) })
const client = createClient(server.base, { source: SOURCE })
/** Asks until there is an answer about the statement. */
async function answered(nextUri) {
  for (;;) {
    const answer = await client.send('GET', new URL(nextUri).pathname).catch(() => undefined)
    if (answer?.status !== 200) {
      await sleep(50)
      continue
    }
    const { error, nextUri: next } = JSON.parse(answer.body)
    if (error) throw new Error(error.message)
    // Without the address of the next page it is no answer of the cluster.
    if (next !== nextUri) return next
  }
}
const posted = await Promise.all(Array.from({ length: OPEN }, () => client.send('POST', '/v1/statement', 'SELECT 1')))
const uris = await Promise.all(posted.map(({ body }) => answered(JSON.parse(body).nextUri)))
const killed = JSON.parse(readFileSync(join(server.dataDir, 'supervisor.json'), 'utf8')).children[0].pid
const waiting = uris.map(answered)
await sleep(200)
const before = cpuByKind(server)
const start = performance.now()
process.kill(killed, 'SIGKILL')
const seconds = () => ((performance.now() - start) / 1000).toFixed(2)
// Answers that came before the kill count for nothing: each client asks twice.
const again = waiting.map(async (one) => answered(await one))
const first = await Promise.race(again).then(seconds)
await Promise.all(again)
const all = seconds()
const after = cpuByKind(server)
const cpu = Object.keys(after).map((kind) => {
  const spent = kind === 'coordinator' ? after[kind] : after[kind] - (before[kind] ?? 0)
  return `${kind} ${(spent / 1000).toFixed(2)} s`
})
console.log(
  `${OPEN} delegated queries, coordinator killed: first client answered after ${first} s, all after ${all} s; ` +
    `CPU ${cpu.join(', ')}`,
)
client.close()
await server.stop()
cluster.close()
