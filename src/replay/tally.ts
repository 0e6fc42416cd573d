import { LineGroups, type Breakdown } from './breakdown.ts'
import type { ReplayLine, VerdictCounts, VerdictName } from './replay-line.ts'

/** The findings of a replay so far, in bounded memory. */
export interface Tally {
  readonly counts: VerdictCounts
  add(line: ReplayLine): void
  /** How many statements were slower or faster beyond noise, and the first of them, at most `SHOWN`. */
  readonly speeds: { readonly slower: number; readonly faster: number; readonly lines: readonly ReplayLine[] }
  /** The first lines with a verdict, at most `SHOWN`. */
  linesOf(verdict: VerdictName): readonly ReplayLine[]
  breakdown(): Breakdown
}

/** The maximum number of statements shown for each verdict. A longer report would not be read, and a row may be long. */
const SHOWN = 200

export function createTally(): Tally {
  const counts: Partial<Record<VerdictName, number>> = {}
  const lines = new Map<VerdictName, ReplayLine[]>()
  const groups = new LineGroups()
  const speeds = { slower: 0, faster: 0, lines: [] as ReplayLine[] }
  return {
    counts,
    speeds,
    add(line) {
      const { verdict } = line
      groups.add(line)
      counts[verdict] = (counts[verdict] ?? 0) + 1
      if (line.speed) {
        speeds[line.speed.kind]++
        if (speeds.lines.length < SHOWN) speeds.lines.push(line)
      }
      if (verdict === 'SAME') return
      const kept = lines.get(verdict)
      if (kept === undefined) lines.set(verdict, [line])
      else if (kept.length < SHOWN) kept.push(line)
    },
    linesOf: (verdict) => lines.get(verdict) ?? [],
    breakdown: () => groups.breakdown(),
  }
}
