// npm run attack -- [--seed N] [--cases M] [--log postgres|kafka] …: attacks real processes with random requests.
import { mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { FoundFault } from './attack-case.ts'
import { auditCases, largeAudit, startAuditBed } from './audit-cases.ts'
import { startBed } from './bed.ts'
import { families, runCampaign, shownBytes } from './campaign.ts'
import { auditLog } from './checks.ts'
import { closeLogAttacks } from './log-attacks.ts'

const USAGE = `usage: npm run attack -- [options]

  --seed N         what is drawn (1)
  --cases M        how many cases (1000)
  --case K         one case alone, by its number; several with commas between
  --log WHICH      postgres or kafka (postgres)
  --guarded        clients must be known: most cases have a password, some have none, or another's
  --only NAMES     families, with commas between: ${families.map(({ name }) => name).join(', ')}
  --lanes L        so many cases at the same time (6)
  --keep FOLDER    bytes that were sent before a fault, and logs of the servers (below the temporary folder)

Exit code 1 when anything was wrong.
`

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    cases: { type: 'string', default: '1000' },
    case: { type: 'string' },
    log: { type: 'string', default: 'postgres' },
    guarded: { type: 'boolean', default: false },
    only: { type: 'string' },
    lanes: { type: 'string', default: '6' },
    keep: { type: 'string', default: join(tmpdir(), 'quipu-attack') },
    help: { type: 'boolean', default: false },
  },
})
const log = (['postgres', 'kafka'] as const).find((one) => one === values.log)
if (values.help || !log) {
  process.stdout.write(USAGE)
  process.exit(values.help ? 0 : 64)
}
const seed = Number(values.seed)
const cases = values.case?.split(',').map(Number) ?? Array.from({ length: Number(values.cases) }, (_, index) => index)
const only = values.only?.split(',').map((name) => name.trim())
const began = performance.now()
/** The number of faults of one kind that are printed; all are counted. */
const TOLD = 3
const reported = new Map<string, number>()

function report(fault: FoundFault): void {
  const kind = kindOf(fault)
  const count = (reported.get(kind) ?? 0) + 1
  reported.set(kind, count)
  if (count > TOLD) return
  const file = join(values.keep, `seed-${seed}-case-${fault.index}.bytes`)
  mkdirSync(values.keep, { recursive: true })
  writeFileSync(file, Buffer.concat(fault.sent.flatMap((bytes) => [bytes, Buffer.from('\n\n')])))
  const again = `npm run attack -- --seed ${seed} --case ${fault.index} --log ${log}${values.guarded ? ' --guarded' : ''}${values.only === undefined ? '' : ` --only '${values.only}'`}`
  console.log(`case ${fault.index} (${fault.family}): ${fault.message.slice(0, 1500)}`)
  console.log(`  sent (whole in ${file}):\n${shownBytes(fault.sent.slice(-4))}`)
  console.log(`  again: ${again}`)
}

/** The kind of a fault: its family and the beginning of its message without numbers. */
function kindOf({ family, message }: FoundFault): string {
  return `${family}: ${message.replaceAll(/\d+/g, '#').slice(0, 60)}`
}

/** Runs the audit cases. @returns a line for each attack that succeeds */
async function runAuditCases(): Promise<readonly string[]> {
  const auditBed = await startAuditBed(largeAudit)
  const wrong: string[] = []
  try {
    for (const one of auditCases) {
      const fault = await one.run(auditBed).then(
        () => undefined,
        (error: unknown) => String(error),
      )
      console.log(`${fault === undefined ? 'closed' : 'OPEN'}: ${one.name}`)
      if (fault !== undefined) wrong.push(`${one.name}: ${fault}`)
    }
  } finally {
    await auditBed.stop()
  }
  return wrong
}

let stopping = false
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => (stopping = true))
const audited = values.case === undefined && only === undefined ? await runAuditCases() : []
const bed = await startBed({ log, guarded: values.guarded })
console.log(`seed ${seed}, ${cases.length} cases, the log in ${log}${values.guarded ? ', clients must be known' : ''}`)
let sick: readonly string[] = audited
let faults: readonly FoundFault[] = []
try {
  const result = await runCampaign({
    bed,
    seed,
    cases,
    lanes: Number(values.lanes),
    ...(only ? { only } : {}),
    stopping: () => stopping,
    onFault: report,
    onProgress: (done, { memory }) => {
      const sizes = [...memory].map(([name, bytes]) => `${name} ${Math.round(bytes / 2 ** 20)} MB`).join(', ')
      console.log(`${done} cases in ${((performance.now() - began) / 1000).toFixed(0)} s; ${sizes}`)
    },
  })
  faults = result.faults
  sick = [...sick, ...result.sick, ...(await auditLog(bed))]
  console.log([...result.cases].map(([name, count]) => `${name} ${count}`).join(', '))
} finally {
  await closeLogAttacks(bed)
  const logs = bed.all.map(({ name, supervisor }) => `=== ${name}\n${supervisor.stdout()}\n${supervisor.stderr()}\n`)
  sick = [...sick, ...(await bed.stop())]
  if (faults.length > 0 || sick.length > 0) {
    mkdirSync(values.keep, { recursive: true })
    writeFileSync(join(values.keep, `seed-${seed}-logs.txt`), logs.join(''))
    console.log(`Logs of the servers: ${join(values.keep, `seed-${seed}-logs.txt`)}`)
  }
}
for (const [kind, count] of [...reported].toSorted((a, b) => b[1] - a[1])) console.log(`${count} × ${kind}`)
for (const line of sick) console.log(`SICK ${line}`)
console.log(`${cases.length} cases, ${faults.length} faults, ${sick.length} things wrong with the servers`)
process.exitCode = faults.length > 0 || sick.length > 0 ? 1 : 0
