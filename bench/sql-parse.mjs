// Parsing: `node bench/sql-parse.mjs` after `npx tsc -p .`. Prints median and p99 in milliseconds, and whether the
// figures asked for hold: 0.1 ms for small statements, 1 ms for each TPC-H query, 200 ms for a megabyte.
import { readFileSync, readdirSync } from 'node:fs'
import { checkLimits } from '../dist/sql/syntax/limits.js'
import { parseStatement } from '../dist/sql/syntax/parser.js'
import { printStatement } from '../dist/sql/syntax/printer.js'
import { redactSecrets } from '../dist/sql/syntax/redact-secrets.js'

const corpus = new URL('../test/conformance/', import.meta.url)
const statementsOf = (file) =>
  readFileSync(new URL(file, corpus), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

function measure(run, runs) {
  const times = []
  for (let count = 0; count < runs; count++) {
    const start = performance.now()
    run()
    times.push(performance.now() - start)
  }
  times.sort((a, b) => a - b)
  return { median: times[runs >> 1], p99: times[Math.min(runs - 1, Math.floor(runs * 0.99))] }
}

let held = true
function report(name, { median, p99 }, limit) {
  const verdict = limit === undefined ? '' : median <= limit ? `ok (${limit})` : `TOO SLOW (${limit})`
  if (limit !== undefined && median > limit) held = false
  console.log(`${name.padEnd(44)} median ${median.toFixed(4)}  p99 ${p99.toFixed(4)}  ${verdict}`)
}

// What a coordinator's first statements cost: nothing is compiled yet.
const first = performance.now()
parseStatement('SELECT 1')
console.log(`first statement of a process ${(performance.now() - first).toFixed(2)}`)

for (const sql of [
  'SELECT 1',
  "SELECT name FROM nation WHERE regionkey = 1 AND name LIKE 'A%' ORDER BY name LIMIT 10",
  'SHOW TABLES FROM tpch.tiny',
]) {
  report(
    sql.slice(0, 40),
    measure(() => parseStatement(sql), 20_000),
    0.1,
  )
}

const tpch = statementsOf('tpch.jsonl').filter(({ error }) => !error)
let slowest = { median: 0, p99: 0 }
let slowestId = ''
for (const { id, sql } of tpch) {
  const time = measure(() => parseStatement(sql), 500)
  if (time.median > slowest.median) [slowest, slowestId] = [time, id]
}
report(`slowest of ${tpch.length} TPC-H statements (${slowestId})`, slowest, 1)

const all = readdirSync(corpus)
  .filter((file) => file.endsWith('.jsonl'))
  .flatMap(statementsOf)
  .filter(({ error }) => error?.errorName !== 'SYNTAX_ERROR')
const each = (run) => {
  const times = all.map(({ sql }) => measure(() => run(sql), 20).median).sort((a, b) => a - b)
  return { median: times[times.length >> 1], p99: times[Math.floor(times.length * 0.99)] }
}
report(`${all.length} statements of the corpus: parse`, each(parseStatement))
report('  redact', each(redactSecrets))
const parsed = new Map(all.map(({ sql }) => [sql, parseStatement(sql)]))
report(
  '  print',
  each((sql) => printStatement(parsed.get(sql))),
)
report(
  '  limits',
  each((sql) => checkLimits(sql, parsed.get(sql))),
)

const fill = (piece, between) => {
  const pieces = []
  for (let length = 0; length < 1_000_000; length += pieces.at(-1).length + between.length)
    pieces.push(piece(pieces.length))
  return pieces.join(between)
}

/** CPU time of the process, the best of the runs as `median`: on a busy machine all else says how busy it was. */
function measureCpu(run, runs) {
  const times = []
  for (let count = 0; count < runs; count++) {
    const start = process.cpuUsage()
    run()
    const { user, system } = process.cpuUsage(start)
    times.push((user + system) / 1000)
  }
  times.sort((a, b) => a - b)
  return { median: times[0], p99: times[runs - 1] }
}

for (const [name, sql] of [
  ['1 MB of columns', `SELECT ${fill((index) => `a.col_${index} AS c${index}`, ', ')} FROM a`],
  ['1 MB of an IN list', `SELECT 1 FROM a WHERE b IN (${fill((index) => String(index), ', ')})`],
  ['1 MB of VALUES', `VALUES ${fill((index) => `(${index}, 'name ${index}', 1.5, DATE '2020-01-01')`, ', ')}`],
  ['1 MB of AND', `SELECT 1 FROM a WHERE ${fill((index) => `b${index} = ${index} * 2`, ' AND ')}`],
  ['1 MB of CASE', `SELECT CASE ${fill((index) => `WHEN a = ${index} THEN 'x${index}'`, ' ')} END FROM a`],
  ['1 MB string', `SELECT '${"it''s ".repeat(160_000)}'`],
]) {
  report(
    `${name} (${(sql.length / 1e6).toFixed(2)} MB), CPU`,
    measureCpu(() => parseStatement(sql), 15),
    200,
  )
}
if (!held) process.exitCode = 1
