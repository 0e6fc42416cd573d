// npm run soak -- [--minutes N] [--seed N]: the whole set as processes, clients, faults from a seed, and a verdict.
import { mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { soakFaults } from './faults.ts'
import { runSoak } from './soak.ts'
import { verdictOf, violationsOf } from './verdict.ts'

const USAGE = `usage: npm run soak -- [options]

  --minutes N      rounds of all faults go on for so long (15); a round of outages of 60 s takes about ten minutes
  --seed N         order and targets of the faults, statements of the clients (1)
  --outage S       seconds that Kafka and Postgres are away, and the processors are busy (60)
  --only FAULT     this fault alone, again and again; may be given several times: ${soakFaults.join(', ')}
  --keep FOLDER    logs of the programs and what was seen (below the temporary folder)

Exit code 1 when the set did not hold.
`

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '15' },
    seed: { type: 'string', default: '1' },
    outage: { type: 'string', default: '60' },
    only: { type: 'string', multiple: true, default: [] },
    keep: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
const only = soakFaults.filter((kind) => values.only.includes(kind))
if (values.help || only.length !== values.only.length) {
  process.stdout.write(USAGE)
  process.exit(values.help ? 0 : 64)
}
const seed = Number(values.seed)
const minutes = Number(values.minutes)
const outageMs = Number(values.outage) * 1000
const keepIn = values.keep ?? join(tmpdir(), 'quipu-soak', `seed-${seed}-${Date.now()}`)
mkdirSync(keepIn, { recursive: true })
const record = await runSoak({
  seed,
  durations: {
    outageMs,
    diskFullMs: outageMs / 2,
    busyMs: outageMs,
    calmMs: Math.min(30_000, (minutes * 60_000) / 40),
  },
  forMs: minutes * 60_000,
  ...(only.length > 0 ? { only } : {}),
  logLevel: 'info',
  report: (line) => console.log(`${new Date().toISOString()} ${line}`),
  keepIn,
})
writeFileSync(join(keepIn, 'record.json'), JSON.stringify(record, undefined, 1))
const verdict = verdictOf(record)
const violations = violationsOf(verdict)
console.log(`\n${verdict.table}\n`)
console.log(`the writer changed ${record.epochs.length} times, ${verdict.tradedEpochs.length} times without a kill`)
for (const line of violations) console.log(`VIOLATION ${line}`)
console.log(`${violations.length} violations; logs and record in ${keepIn}`)
process.exit(violations.length > 0 ? 1 : 0)
