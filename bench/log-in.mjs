// What log-ins cost: SELECT 1 with a verified password, with a JWT and over TLS beside the same without, in rounds by turns
// of one server each, times and CPU of the coordinator; then first log-ins a second, each of another user (bcrypt, cost 10).
import { Agent, request } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'
import { createCredentials } from './credentials.mjs'
import { cpuByKind, quantile, startServer } from './quipu-server.mjs'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 9)
const COUNT = Number(process.env.BENCH_COUNT ?? 200)
const CLIENTS = 8
const LOG_INS = 60

const credentials = createCredentials(['bench', ...Array.from({ length: LOG_INS }, (_, index) => `user${index}`)])
const open = await startServer()
const guarded = await startServer({ env: credentials.authentication })
const overTls = await startServer({ env: credentials.tls })

const ways = {
  without: createAsker(open),
  password: createAsker(guarded, () => ({ authorization: credentials.basic('bench') })),
  jwt: createAsker(guarded, constant({ authorization: credentials.bearer('bench') })),
  'TLS, without': createAsker(overTls),
}

const found = Object.fromEntries(Object.keys(ways).map((name) => [name, { times: [], rates: [], cpu: [] }]))
for (const ask of Object.values(ways)) for (let count = 0; count < COUNT; count++) await ask.selectOne()
const names = Object.keys(ways)
for (let round = 0; round < ROUNDS; round++) {
  // Each is first and last as often as the others.
  for (const name of names.map((_, index) => names[(index + round) % names.length]))
    await measure(ways[name], found[name])
}

for (const name of names) {
  const { times, rates, cpu } = found[name]
  const added = median(times.map((time, round) => time - found.without.times[round]))
  const ratio = median(rates.map((rate, round) => rate / found.without.rates[round]))
  console.log(
    `${name.padEnd(12)}  one at a time p50 ${median(times).toFixed(2)} ms (${added.toFixed(2)} ms added)  ${CLIENTS} at once ${median(rates).toFixed(0)}/s (${ratio.toFixed(3)} of without)  coordinator ${median(cpu).toFixed(2)} ms CPU a statement`,
  )
}

const begun = performance.now()
let left = LOG_INS
await Promise.all(
  Array.from({ length: 4 }, async () => {
    while (left-- > 0) {
      const ask = createAsker(guarded, constant({ authorization: credentials.basic(`user${left}`) }))
      await ask.selectOne()
      ask.close()
    }
  }),
)
console.log(
  `first log-ins, each with a SELECT 1: ${(LOG_INS / ((performance.now() - begun) / 1000)).toFixed(1)} a second`,
)

for (const ask of Object.values(ways)) ask.close()
for (const server of [open, guarded, overTls]) await server.stop()
credentials.remove()

async function measure(ask, into) {
  const times = []
  for (let count = 0; count < COUNT; count++) {
    const start = performance.now()
    await ask.selectOne()
    times.push(performance.now() - start)
  }
  into.times.push(median(times))
  const before = cpuByKind(ask.server).coordinator
  const start = performance.now()
  let rest = COUNT
  await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      while (rest-- > 0) await ask.selectOne()
    }),
  )
  into.rates.push(COUNT / ((performance.now() - start) / 1000))
  into.cpu.push((cpuByKind(ask.server).coordinator - before) / COUNT)
}

function median(values) {
  return quantile(
    values.toSorted((a, b) => a - b),
    0.5,
  )
}

function constant(value) {
  return () => value
}

/** A user of a server, who keeps his connections. */
function createAsker(server, headersOf = constant({})) {
  const { hostname, port, protocol } = new URL(server.base)
  const isTls = protocol === 'https:'
  const agent = isTls ? new TlsAgent({ keepAlive: true, ca: credentials.ca }) : new Agent({ keepAlive: true })
  const send = (method, path, body) =>
    new Promise((resolve, reject) => {
      const headers = { 'x-trino-user': 'bench', ...headersOf() }
      if (headers.authorization) delete headers['x-trino-user']
      const sent = (isTls ? tlsRequest : request)({ hostname, port, agent, method, path, headers }, (answer) => {
        let text = ''
        answer.setEncoding('utf8').on('data', (part) => (text += part))
        answer.on('end', () => (answer.statusCode === 200 ? resolve(text) : reject(new Error(text))))
        answer.on('error', reject)
      })
      sent.on('error', reject)
      sent.end(body)
    })
  return {
    server,
    async selectOne() {
      let text = await send('POST', '/v1/statement', 'SELECT 1')
      for (let next; (next = JSON.parse(text).nextUri);) text = await send('GET', new URL(next).pathname)
      if (text.includes('"error"')) throw new Error(text)
    },
    close: () => agent.destroy(),
  }
}
