// npm run chaos -- [--seed N] [--runs M] [--parallel P] …: runs servers with the faults of a seed, and checks them.
import { appendFileSync, mkdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Harness } from './harness.ts'
import { reportTable, runLine } from './report.ts'
import type { SeedResult } from './run-seed.ts'

const USAGE = `usage: npm run chaos -- [options]

  --seed N         the first seed (1)
  --runs M         how many, one seed after the other (10)
  --parallel P     so many at the same time (1)
  --log WHICH      postgres, kafka, or mixed (mixed, where a broker can be had)
  --faults WHICH   all; processes: kills and stops of coordinator, worker, engine only; or outages: of log and database,
                   coordinators killed meanwhile (all)
  --clients C      clients that read (6)
  --writers W      clients that write beside them (2)
  --writes         four clients that write, and two that read; writes are INSERT, UPDATE, DELETE, MERGE, CREATE, RENAME, DROP, REFRESH
  --clusters       two clusters behind the server, and faults of them and of the gateway; seeds share the servers
  --load-ms T      how long they begin statements (3000)
  --minutes X      no run is begun after so long
  --out FILE       a JSON line a run is appended here
  --keep FOLDER    data and logs of runs with something wrong (below the temporary folder)
  --report FILE    runs nothing: the table of a file that --out wrote

Exit code 1 when anything was wrong.
`

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    runs: { type: 'string', default: '10' },
    parallel: { type: 'string', default: '1' },
    log: { type: 'string', default: 'mixed' },
    faults: { type: 'string', default: 'all' },
    clients: { type: 'string' },
    writers: { type: 'string' },
    writes: { type: 'boolean', default: false },
    clusters: { type: 'boolean', default: false },
    'load-ms': { type: 'string', default: '3000' },
    minutes: { type: 'string' },
    out: { type: 'string' },
    report: { type: 'string' },
    keep: { type: 'string', default: join(tmpdir(), 'quipu-chaos') },
    help: { type: 'boolean', default: false },
  },
})
const log = (['postgres', 'kafka', 'mixed'] as const).find((one) => one === values.log)
const faults = (['all', 'processes', 'outages'] as const).find((one) => one === values.faults)
if (values.help || !log || !faults) {
  process.stdout.write(USAGE)
  process.exit(values.help ? 0 : 64)
}

if (values.report !== undefined) {
  const lines = readFileSync(values.report, 'utf8').split('\n').filter(Boolean)
  report(lines.map((line) => JSON.parse(line) as SeedResult))
  process.exit()
}

const clients = values.clients ?? (values.writes ? '2' : '6')
const writers = values.writers ?? (values.writes ? '4' : '2')
mkdirSync(values.keep, { recursive: true })
const harness = await Harness.open({
  log: values.clusters ? 'postgres' : log,
  clusters: values.clusters,
  withoutPython: values.clusters,
  faults,
  clients: Number(clients),
  writers: Number(writers),
  loadMs: Number(values['load-ms']),
  keepIn: values.keep,
})
if (faults === 'all' && !values.clusters && !harness.abilities.disk)
  console.log('No right to mount: no seed fills a disk')

const results: SeedResult[] = []
const first = Number(values.seed)
const runs = Number(values.runs)
const until = performance.now() + Number(values.minutes ?? Number.POSITIVE_INFINITY) * 60_000
let next = first
let stopped = false
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  // Runs that have begun end normally and clean up.
  process.once(name, () => (stopped = true))
}

async function lane(index: number): Promise<void> {
  while (next < first + runs && !stopped && performance.now() < until) {
    const seed = next++
    try {
      const result = await harness.run(seed, index)
      results.push(result)
      console.log(runLine(result))
      if (result.verdict === 'wrong') console.log(`    again: ${again(seed)}`)
      if (values.out !== undefined) appendFileSync(values.out, `${JSON.stringify(result)}\n`)
    } catch (error) {
      console.log(`seed ${seed}: the run itself failed: ${error instanceof Error ? error.stack : String(error)}`)
      process.exitCode = 2
    }
  }
}

function again(seed: number): string {
  const { log: had } = harness.abilities
  const load = `--clients ${clients} --writers ${writers} --load-ms ${values['load-ms']}`
  const kind = values.clusters ? '--clusters' : `--log ${had} --faults ${faults}`
  return `npm run chaos -- --seed ${seed} --runs 1 ${kind} ${load}`
}

function report(all: readonly SeedResult[]): void {
  console.log(`\n${reportTable(all)}\n`)
  const wrong = all.filter(({ verdict }) => verdict === 'wrong').map(({ plan }) => plan.seed)
  console.log(`${all.length} runs, ${wrong.length} wrong${wrong.length > 0 ? `: ${wrong.join(', ')}` : ''}`)
  if (wrong.length > 0) process.exitCode = 1
}

await Promise.all(Array.from({ length: Number(values.parallel) }, (_, index) => lane(index)))
for (const line of await harness.close()) {
  console.log(line)
  process.exitCode = 1
}
report(results)
