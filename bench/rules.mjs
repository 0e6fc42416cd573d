// What rules cost: SELECT 1 and scans under 500 rules for tables, 20 of them with a filter and a mask, beside the same server
// without a rules file, in rounds by turns; the scan without rules has filter and mask in its own text. Then a change of
// 10,000 rules: how long until it is in force, and how long SELECT 1 of others takes meanwhile.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCredentials } from './credentials.mjs'
import { cpuByKind, quantile, startServer } from './quipu-server.mjs'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 9)
const COUNT = Number(process.env.BENCH_COUNT ?? 50)
const RULES = 500
const POLICIES = 20
const MANY = 10_000

const MASK = `CAST(substr(comment, 1, 3) || 'x' AS varchar(44))`
const FILTER = `quantity > 10 AND returnflag <> 'N'`

const folder = mkdtempSync(join(tmpdir(), 'quipu-bench-rules-'))
chmodSync(folder, 0o711)
const file = join(folder, 'rules.json')
writeRules(RULES)
const credentials = createCredentials(['bench'])
const without = createAsker(await startServer({ env: credentials.authentication }))
const under = createAsker(await startServer({ env: { ...credentials.authentication, QUIPU_ACCESS_RULES_FILE: file } }))

const PLAIN = 'SELECT custkey, count(*) FROM orders GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 3'
const scan = (column, from) =>
  `SELECT ${column}, count(*), sum(quantity) FROM ${from} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 3`
const statements = {
  'SELECT 1': { without: 'SELECT 1', under: 'SELECT 1' },
  'scan of a table without a filter': { without: PLAIN, under: PLAIN },
  'filtered and masked scan': {
    without: scan(MASK, `lineitem WHERE ${FILTER}`),
    under: scan('comment', 'lineitem'),
  },
}
for (const [name, sql] of Object.entries(statements)) {
  const answers = { without: await without.rows(sql.without), under: await under.rows(sql.under) }
  if (JSON.stringify(answers.without) !== JSON.stringify(answers.under))
    throw new Error(`${name}: other rows under rules: ${JSON.stringify(answers)}`)
  const found = { without: { times: [], cpu: [] }, under: { times: [], cpu: [] } }
  for (let round = 0; round < ROUNDS; round++) {
    const order = round % 2 === 0 ? ['without', 'under'] : ['under', 'without']
    for (const server of order) await measure(server === 'under' ? under : without, sql[server], found[server])
  }
  const added = (of) => median(found.under[of].map((value, round) => value - found.without[of][round]))
  console.log(
    `${name.padEnd(34)} p50 ${median(found.without.times).toFixed(2)} ms without, ${added('times').toFixed(2)} ms added; coordinator ${median(found.without.cpu).toFixed(2)} ms CPU, ${added('cpu').toFixed(2)} ms added`,
  )
}

await reload()
for (const { server, close } of [without, under]) {
  close()
  await server.stop()
}
credentials.remove()
rmSync(folder, { recursive: true, force: true })

/** By a marker: the tables that may be read change with the rules. */
async function reload() {
  const quiet = await latencies(under, () => false, 100)
  writeRules(MANY, 'region')
  const begun = performance.now()
  let until
  const meanwhile = await latencies(under, async () => {
    if (until !== undefined) return false
    const refused = await under.rows('SELECT count(*) FROM region').then(
      () => false,
      (error) => error.message.includes('Cannot select'),
    )
    if (refused) until = performance.now() - begun
    return !refused
  })
  console.log(
    `reload of ${MANY} rules: in force ${(until / 1000).toFixed(1)} s after the file was written (2 s of them until it rests); SELECT 1 meanwhile p50 ${quantile(meanwhile, 0.5).toFixed(1)} ms, longest ${meanwhile.at(-1).toFixed(1)} ms (before: ${quantile(quiet, 0.5).toFixed(1)} and ${quiet.at(-1).toFixed(1)} ms)`,
  )
  const first = await timed(() => under.rows('SELECT count(*) FROM nation'))
  const second = await timed(() => under.rows('SELECT count(*) FROM nation'))
  console.log(`the first statement under them ${first.toFixed(1)} ms, the next ${second.toFixed(1)} ms`)
}

/** Of SELECT 1, one after the other, for as long as wanted. @returns sorted milliseconds */
async function latencies(ask, wanted, count = 0) {
  const times = []
  while (times.length < count || (await wanted())) times.push(await timed(() => ask.rows('SELECT 1')))
  return times.toSorted((a, b) => a - b)
}

async function timed(work) {
  const begun = performance.now()
  await work()
  return performance.now() - begun
}

async function measure(ask, sql, into) {
  const times = []
  const before = cpuByKind(ask.server).coordinator
  for (let count = 0; count < COUNT; count++) times.push(await timed(() => ask.rows(sql)))
  into.times.push(median(times))
  into.cpu.push((cpuByKind(ask.server).coordinator - before) / COUNT)
}

/** @param closed a table that nobody may read */
function writeRules(count, closed) {
  const tables = []
  if (closed) tables.push({ table: closed, privileges: [] })
  for (let n = tables.length; n < count - 1; n++) {
    const rule = {
      user: `user${n % 50}|team_${n}_.*`,
      schema: `s${n}(_[a-z]+)?`,
      table: `t_${n}.*`,
      privileges: ['SELECT'],
    }
    if (n % (count / POLICIES) === 0)
      Object.assign(rule, { filter: `a > ${n}`, columns: [{ name: 'b', mask: `substr(b, 1, ${n + 1})` }] })
    tables.push(rule)
  }
  const lineitem = { table: 'lineitem', filter: FILTER, columns: [{ name: 'comment', mask: MASK }] }
  tables.push({ user: 'bench', ...lineitem, privileges: ['SELECT'] }, { privileges: ['SELECT'] })
  writeFileSync(file, JSON.stringify({ tables }), { mode: 0o644 })
}

function createAsker(server) {
  const agent = new Agent({ keepAlive: true })
  const { hostname, port } = new URL(server.base)
  const headers = {
    'x-trino-user': 'bench',
    'x-trino-catalog': 'tpch',
    'x-trino-schema': 'tiny',
    authorization: credentials.basic('bench'),
  }
  const send = (method, path, body) =>
    new Promise((resolve, reject) => {
      const sent = request({ hostname, port, agent, method, path, headers }, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (part) => (text += part))
        response.on('error', reject).on('end', () => {
          if (response.statusCode === 200) resolve(JSON.parse(text))
          else reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`))
        })
      })
      sent.on('error', reject).end(body)
    })
  return {
    server,
    async rows(sql) {
      const rows = []
      let answer = await send('POST', '/v1/statement', sql)
      for (;;) {
        if (answer.error) throw new Error(answer.error.message)
        rows.push(...(answer.data ?? []))
        if (!answer.nextUri) return rows
        answer = await send('GET', new URL(answer.nextUri).pathname)
      }
    },
    close: () => agent.destroy(),
  }
}

function median(values) {
  return quantile(
    values.toSorted((a, b) => a - b),
    0.5,
  )
}
