// SELECT 1 through a Quipu, beside the same statement at its cluster directly, pair by pair in one run. The cluster runs
// nothing: it answers at once, or at the times of a Trino. The last lines are a timeline of the requests of a statement.
import { AT_ONCE, LIKE_TRINO, startFakeTrino } from './fake-trino.mjs'
import { SOURCE, startGateway } from './gateway.mjs'
import { createClient, cpuByKind, quantile } from './quipu-server.mjs'

const PAIRS = Number(process.env.BENCH_COUNT ?? 300)

const median = (values) =>
  quantile(
    [...values].sort((a, b) => a - b),
    0.5,
  )

/** Runs a statement, and calls back at each moment. */
async function follow(client, seen) {
  seen('client POST sent')
  let answer = JSON.parse((await client.send('POST', '/v1/statement', 'SELECT 1')).body)
  seen('client POST answered')
  let requests = 1
  for (; answer.nextUri; requests++) {
    seen(`client GET ${requests} sent`)
    answer = JSON.parse((await client.send('GET', new URL(answer.nextUri).pathname)).body)
    seen(`client GET ${requests} answered`)
    if (answer.error) throw new Error(answer.error.message)
  }
  return requests
}

async function measure(name, script) {
  let moments
  const seen = (moment) => moments?.push([moment, performance.now()])
  const cluster = await startFakeTrino(script, seen)
  const server = await startGateway(cluster)
  const [direct, through] = [cluster.base, server.base].map((base) => createClient(base, { source: SOURCE }))
  const local = createClient(server.base)
  const timed = async (work) => {
    const began = performance.now()
    await work()
    return performance.now() - began
  }
  const nothing = () => {}
  const times = { direct: [], through: [], local: [] }
  const timelines = new Map()
  let requests
  let cpu
  for (let pair = -50; pair < PAIRS; pair++) {
    if (pair === 0) cpu = cpuByKind(server)
    const one = await timed(() => follow(direct, nothing))
    moments = []
    const other = await timed(async () => (requests = await follow(through, seen)))
    const [, began] = moments[0]
    const timeline = moments
    moments = undefined
    if (pair < 0) continue
    times.direct.push(one)
    times.through.push(other)
    for (const [moment, at] of timeline) timelines.set(moment, [...(timelines.get(moment) ?? []), at - began])
  }
  const after = cpuByKind(server)
  for (let count = 0; count < PAIRS; count++) times.local.push(await timed(() => follow(local, nothing)))
  const differences = times.through.map((time, index) => time - times.direct[index])
  console.log(
    `${name}: direct p50 ${median(times.direct).toFixed(1)} ms, through Quipu ${median(times.through).toFixed(1)} ms in ` +
      `${requests} requests, median of the differences ${median(differences).toFixed(1)} ms; ` +
      `SELECT 1 that runs here ${median(times.local).toFixed(1)} ms; CPU of a delegated one: ` +
      Object.keys(after)
        .map((kind) => `${kind} ${((after[kind] - (cpu[kind] ?? 0)) / PAIRS).toFixed(2)} ms`)
        .join(', '),
  )
  const rows = [...timelines].map(([moment, at]) => [moment, median(at), at.length])
  for (const [moment, at, count] of rows.sort(([, a], [, b]) => a - b))
    console.log(`  ${at.toFixed(1).padStart(6)} ms  ${moment}${count < PAIRS ? ` (${count} of ${PAIRS})` : ''}`)
  for (const client of [direct, through, local]) client.close()
  await server.stop()
  cluster.close()
}

await measure('a cluster that answers at once', AT_ONCE)
await measure('a cluster with the times of a Trino', LIKE_TRINO)
