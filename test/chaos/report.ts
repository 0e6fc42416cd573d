import type { DoneFault } from './faults.ts'
import type { Outcome } from './outcome.ts'
import type { FaultKind } from './plan.ts'
import type { SeedResult } from './run-seed.ts'
import type { WriteEnd } from './writing-client.ts'

/** A statement counts as hit by a fault if it ran during the fault or within this time after it. */
const WAKE_MS = 1_000

interface Row {
  runs: number
  faults: number
  survived: number
  cleanRuns: number
  wrongRuns: number
  hit: number
  right: number
  clean: number
  left: number
  wrong: number
}

const emptyRow = (): Row => ({
  runs: 0,
  faults: 0,
  survived: 0,
  cleanRuns: 0,
  wrongRuns: 0,
  hit: 0,
  right: 0,
  clean: 0,
  left: 0,
  wrong: 0,
})

const hitBy = ({ fromMs, toMs }: DoneFault, outcome: Outcome): boolean =>
  outcome.fromMs <= toMs + WAKE_MS && outcome.toMs >= fromMs

/** The report line of a run. */
export function runLine({ plan, verdict, faults, outcomes, writes, wallMs, wrong, keptIn }: SeedResult): string {
  const count = (result: Outcome['result']): number => outcomes.filter((one) => one.result === result).length
  const kinds = faults.map(({ kind, missed }) => (missed ? `(${kind})` : kind)).join(', ')
  const line =
    `seed ${plan.seed} ${plan.log}: ${verdict}; ${kinds || 'no fault'}; ${outcomes.length} statements: ` +
    `${count('right')} right, ${count('clean')} failed cleanly, ${count('left')} left, ${count('wrong')} wrong; ` +
    `${writeCounts(writes)}${(wallMs / 1000).toFixed(1)} s`
  return [line, ...wrong.map((one) => `    ${one}`), ...(keptIn ? [`    kept in ${keptIn}`] : [])].join('\n')
}

function writeCounts(writes: SeedResult['writes']): string {
  if (writes.length === 0) return ''
  const count = (end: WriteEnd): number => writes.filter((one) => one.end === end).length
  return `${writes.length} writes: ${count('done')} done, ${count('not done')} not done, ${count('unknown')} unknown; `
}

/** The table by kind of fault: the runs with such a fault, and the statements that ran during it. */
export function reportTable(results: readonly SeedResult[]): string {
  const rows = new Map<FaultKind | 'all', Row>()
  const rowOf = (kind: FaultKind | 'all'): Row => {
    const row = rows.get(kind) ?? emptyRow()
    rows.set(kind, row)
    return row
  }
  for (const result of results) {
    const done = result.faults.filter(({ missed }) => !missed)
    for (const kind of ['all', ...new Set(done.map((fault) => fault.kind))] as const) {
      const row = rowOf(kind)
      const ofKind = kind === 'all' ? done : done.filter((fault) => fault.kind === kind)
      row.runs++
      row.faults += ofKind.length
      if (result.verdict === 'survived') row.survived++
      else if (result.verdict === 'failed cleanly') row.cleanRuns++
      else row.wrongRuns++
      const statements =
        kind === 'all'
          ? result.outcomes
          : result.outcomes.filter((outcome) => ofKind.some((fault) => hitBy(fault, outcome)))
      for (const { result: came } of statements) {
        row.hit++
        row[came]++
      }
    }
  }
  const head = 'fault | faults | runs | survived | failed cleanly | wrong | statements | right | clean | left | wrong'
  const lines = [...rows]
    .sort(([a], [b]) => (a === 'all' ? 1 : b === 'all' ? -1 : a.localeCompare(b)))
    .map(([kind, row]) =>
      [
        kind,
        row.faults,
        row.runs,
        row.survived,
        row.cleanRuns,
        row.wrongRuns,
        row.hit,
        row.right,
        row.clean,
        row.left,
        row.wrong,
      ].join(' | '),
    )
  return [head, head.replaceAll(/[^|]+/g, '---'), ...lines].map((line) => `| ${line} |`).join('\n')
}
