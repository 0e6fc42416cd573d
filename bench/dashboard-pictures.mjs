// npm run pictures: draws the dashboards in docs/pictures from live data. A server under a load of good, failing,
// cancelled and slow statements, with a worker and a coordinator killed on the way; every expression is evaluated by a
// real Prometheus, every table by the read models. No Grafana is needed, so these are drawings of its panels' data.
import { spawn } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { embeddedConnection } from './embedded-connection.mjs'
import { createClient, startServer } from './quipu-server.mjs'

const SECONDS = Number(process.env.PICTURE_SECONDS ?? 150)
const root = new URL('..', import.meta.url).pathname
const program = [join(homedir(), '.cache/quipu/prometheus/usr/bin/prometheus'), '/usr/bin/prometheus'].find(existsSync)
if (!program) throw new Error('No Prometheus (apt-get install prometheus)')

const PALETTE = ['#73bf69', '#f2cc0c', '#5794f2', '#ff9830', '#f2495c', '#b877d9', '#8ab8ff', '#ca95e5']
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))
const prices = join(mkdtempSync(join(tmpdir(), 'quipu-prices-')), 'prices.json')
writeFileSync(
  prices,
  JSON.stringify({
    currency: 'EUR',
    periods: [{ from: '2026-01-01T00:00:00Z', cpuSecond: 0.00002, terabyteScanned: 4.5 }],
  }),
  { mode: 0o644 },
)
chmodSync(dirname(prices), 0o711)
const server = await startServer({ env: { QUIPU_PRICES_FILE: prices } })
const nodes = await (async () => {
  for (;;) {
    const found = await (await fetch(`${server.base}/v1/node`)).json()
    if (found.length > 0) return found
    await sleep(100)
  }
})()
const prometheus = await startPrometheus()
const begun = Date.now() / 1000
await load()
const ended = Date.now() / 1000
const database = new pg.Client(embeddedConnection(server.dataDir))
await database.connect()
mkdirSync(join(root, 'docs/pictures'), { recursive: true })
for (const file of readdirSync(join(root, 'dashboards/json'))) {
  const dashboard = JSON.parse(readFileSync(join(root, 'dashboards/json', file), 'utf8'))
  writeFileSync(join(root, 'docs/pictures', file.replace('.json', '.svg')), await draw(dashboard))
  console.log(`docs/pictures/${file.replace('.json', '.svg')}`)
}
await database.end()
await prometheus.stop()
await server.stop()
rmSync(dirname(prices), { recursive: true, force: true })

async function startPrometheus() {
  const folder = mkdtempSync(join(tmpdir(), 'quipu-pictures-'))
  const port = await new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => resolve(address.port))
    })
  })
  const jobs = { 'quipu-coordinator': new URL(server.base).host, 'quipu-worker': new URL(nodes[0].uri).host }
  writeFileSync(
    join(folder, 'prometheus.yaml'),
    JSON.stringify({
      global: { scrape_interval: '2s', evaluation_interval: '2s' },
      rule_files: [join(root, 'dashboards/rules/quipu.yaml')],
      scrape_configs: Object.entries(jobs).map(([job, target]) => ({
        job_name: job,
        static_configs: [{ targets: [target] }],
      })),
    }),
  )
  const args = [
    `--config.file=${folder}/prometheus.yaml`,
    `--storage.tsdb.path=${folder}/data`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--log.level=error',
  ]
  const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'] })
  return {
    async range(expr) {
      const step = Math.max(2, Math.round((ended - begun) / 120))
      const asked = new URLSearchParams({ query: expr, start: begun, end: ended, step })
      const { data } = await (await fetch(`http://127.0.0.1:${port}/api/v1/query_range?${asked}`)).json()
      return (data?.result ?? []).map(({ metric, values }) => ({
        metric,
        points: values.map(([at, value]) => [at, Number(value)]).filter(([, value]) => Number.isFinite(value)),
      }))
    },
    async stop() {
      child.kill('SIGTERM')
      await new Promise((resolve) => child.once('exit', resolve))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function load() {
  const statements = [
    'SELECT 1',
    'SELECT orderpriority, count(*), sum(totalprice) FROM orders GROUP BY orderpriority',
    'SELECT n.name, count(*) FROM customer c JOIN nation n ON c.nationkey = n.nationkey GROUP BY n.name',
    'SELECT orderkey, partkey, quantity FROM lineitem',
    'SHOW TABLES',
    'SELECT nothing FROM nation',
    'SELECT 1 / (nationkey - 3) FROM nation',
    'SELECT returnflag, approx_percentile(extendedprice, 0.5) FROM lineitem GROUP BY 1 ORDER BY 1',
  ]
  const clients = [
    ['ana', 'dbt'],
    ['ben', 'Metabase'],
    ['bench', 'bench'],
  ].map(([user, source]) => createClient(server.base, { user, source }))
  const [client] = clients
  const stop = Date.now() + SECONDS * 1000
  const workers = Array.from({ length: 6 }, async (_, index) => {
    for (let turn = index; Date.now() < stop; turn++) {
      await clients[turn % clients.length].rows(statements[turn % statements.length]).catch(() => {})
      await sleep(50 + 40 * Math.sin(turn / 40) + 100 * (index % 3))
    }
  })
  const state = () => JSON.parse(readFileSync(join(server.dataDir, 'supervisor.json'), 'utf8'))
  const faults = (async () => {
    for (const [at, fault] of [
      [0.3, cancelOne],
      [0.45, () => process.kill(state().children[1].pid, 'SIGKILL')],
      [0.6, cancelOne],
      [0.7, () => process.kill(state().children[0].pid, 'SIGKILL')],
    ]) {
      await sleep(Math.max(0, stop - SECONDS * 1000 * (1 - at) - Date.now()))
      await fault()
    }
  })()
  await Promise.all([...workers, faults])
  await sleep(4000)
  for (const one of clients) one.close()

  async function cancelOne() {
    const { body } = await client.send('POST', '/v1/statement', 'SELECT count(*) FROM lineitem a, lineitem b')
    const uri = new URL(JSON.parse(body).nextUri).pathname
    await client.send('GET', uri)
    await client.send('DELETE', uri)
  }
}

// --- drawing

async function draw(dashboard) {
  const column = 50
  const unit = 26
  const height = Math.max(...dashboard.panels.map(({ gridPos }) => gridPos.y + gridPos.h)) * unit + 60
  const parts = [`<text x="16" y="34" class="title">${escaped(dashboard.title)}</text>`]
  for (const panel of dashboard.panels) {
    const { x, y, w, h } = panel.gridPos
    const box = { x: x * column + 4, y: y * unit + 54, w: w * column - 8, h: h * unit - 8 }
    parts.push(`<rect x="${box.x}" y="${box.y}" width="${box.w}" height="${box.h}" rx="3" class="panel"/>`)
    parts.push(`<text x="${box.x + 8}" y="${box.y + 18}" class="name">${escaped(panel.title)}</text>`)
    const inner = { x: box.x + 56, y: box.y + 30, w: box.w - 68, h: box.h - 62 }
    parts.push(panel.type === 'table' ? await tableOf(panel, box) : await seriesOf(panel, box, inner))
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1200 ${height}" font-family="sans-serif">
<style>.title{font-size:20px;fill:#ddd}.name{font-size:12px;fill:#ddd}.small{font-size:9px;fill:#999}.big{font-size:34px}
.panel{fill:#181b1f;stroke:#2c3235}.axis{stroke:#2c3235}.cell{font-size:10px;fill:#ccc}</style>
<rect width="1200" height="${height}" fill="#111217"/>
${parts.join('\n')}
</svg>
`
}

async function seriesOf(panel, box, inner) {
  const series = []
  for (const target of panel.targets) {
    const expr = target.expr.replaceAll('$__rate_interval', '20s').replaceAll(/\$\{?(?:job|instance)\b[^}"]*\}?/g, '.*')
    for (const { metric, points } of await prometheus.range(expr))
      if (points.length > 0) series.push({ name: legend(target.legendFormat, metric), points })
  }
  const unit = panel.fieldConfig.defaults.unit
  if (series.length === 0)
    return `<text x="${box.x + box.w / 2 - 60}" y="${box.y + box.h / 2}" class="small">nothing of the kind happened</text>`
  if (panel.type === 'stat') {
    const value = series[0].points.at(-1)[1]
    return `<text x="${box.x + 16}" y="${box.y + box.h / 2 + 14}" class="big" fill="${PALETTE[0]}">${shown(value, unit)}</text>`
  }
  const top = Math.max(...series.flatMap(({ points }) => points.map(([, value]) => value))) || 1
  const across = (at) => inner.x + ((at - begun) / (ended - begun)) * inner.w
  const up = (value) => inner.y + inner.h - (Math.max(0, value) / top) * inner.h
  const axes = [0, 0.5, 1].map((part) => {
    const y = inner.y + inner.h * (1 - part)
    return `<line x1="${inner.x}" x2="${inner.x + inner.w}" y1="${y}" y2="${y}" class="axis"/><text x="${box.x + 6}" y="${y + 3}" class="small">${shown(top * part, unit)}</text>`
  })
  const lines = series.slice(0, 24).map(({ points }, index) => {
    const path = points.map(([at, value], i) => `${i ? 'L' : 'M'}${across(at).toFixed(1)} ${up(value).toFixed(1)}`)
    return `<path d="${path.join('')}" fill="none" stroke="${PALETTE[index % PALETTE.length]}" stroke-width="1.3"/>`
  })
  let x = box.x + 10
  const names = []
  for (const [index, { name }] of series.slice(0, 8).entries()) {
    const width = 18 + name.length * 4.8
    if (x + width > box.x + box.w) break
    names.push(
      `<rect x="${x}" y="${box.y + box.h - 16}" width="8" height="3" fill="${PALETTE[index % PALETTE.length]}"/><text x="${x + 11}" y="${box.y + box.h - 11}" class="small">${escaped(name)}</text>`,
    )
    x += width
  }
  return [...axes, ...lines, ...names].join('')
}

async function tableOf(panel, box) {
  const sql = panel.targets[0].rawSql
    .replaceAll(/\$__timeFilter\(([^)]+)\)/g, "$1 > now() - interval '1 hour'")
    .replaceAll('${user:sqlstring}', "'bench'")
    .replaceAll('${table:sqlstring}', "'%'")
  const { rows, fields } = await database.query(sql)
  const width = box.w / fields.length
  const cut = (value) => {
    const text = value === null ? '' : value instanceof Date ? value.toISOString().slice(0, 19) : String(rounded(value))
    const room = Math.floor(width / 6.4) - 1
    return text.length > room ? `${text.slice(0, room - 1)}…` : text
  }
  const line = (values, y, style) =>
    values
      .map((value, i) => `<text x="${box.x + 8 + i * width}" y="${y}" class="${style}">${escaped(cut(value))}</text>`)
      .join('')
  const head = line(
    fields.map(({ name }) => name),
    box.y + 38,
    'small',
  )
  const body = rows.slice(0, Math.floor((box.h - 50) / 16)).map((row, index) =>
    line(
      fields.map(({ name }) => row[name]),
      box.y + 56 + index * 16,
      'cell',
    ),
  )
  return [head, ...body].join('')
}

function legend(format, metric) {
  const named = (format ?? '').replaceAll(/\{\{(\w+)\}\}/g, (_, label) => metric[label] ?? '')
  return named || Object.values(metric).join(' ') || 'value'
}

function shown(value, unit) {
  const scaled = (steps, base) => {
    let index = 0
    let left = value
    while (Math.abs(left) >= base && index < steps.length - 1) {
      left /= base
      index++
    }
    return `${Number(left.toPrecision(3))}${steps[index]}`
  }
  switch (unit) {
    case 's':
      if (value === 0) return '0'
      return value < 1 ? `${Number((value * 1000).toPrecision(3))} ms` : `${Number(value.toPrecision(3))} s`
    case 'bytes':
    case 'Bps':
      return scaled([' B', ' kB', ' MB', ' GB'], 1024) + (unit === 'Bps' ? '/s' : '')
    case 'percentunit':
      return `${Number((value * 100).toPrecision(3))} %`
    default:
      return scaled(['', ' k', ' M', ' G'], 1000)
  }
}

function rounded(value) {
  return typeof value === 'number' ? Number(value.toPrecision(4)) : value
}

function escaped(text) {
  return String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
