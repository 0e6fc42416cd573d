import { renameSync, rmSync, writeFileSync } from 'node:fs'
import type { Breakdown, BreakdownPart } from '../replay/breakdown.ts'
import { outcomeText } from '../replay/outcome-text.ts'
import { BAD_VERDICTS, differentIn } from '../replay/bad-verdicts.ts'
import type { ReplayLine } from '../replay/replay-line.ts'
import { FIRST_STATEMENTS, type SampleCoverage } from '../replay/replay-plan.ts'
import { reportPage } from '../replay/report-page.ts'
import type { ShadowCounts } from '../replay/shadow/mirror-queue.ts'
import type { Tally } from '../replay/tally.ts'

/** Queries of a shadow that have no verdict. */
export interface ShadowRest extends ShadowCounts {
  /** Queries that wait, or did not end. */
  readonly left: number
}

interface ReportFiles {
  readonly report: string | undefined
  readonly summary: string | undefined
}

/** The addresses of the two servers. */
interface Addresses {
  readonly from: string
  readonly to: string
}

/** The most lines of a text report for fingerprints, and for differences. */
const SHOWN = 10
/** The longest text of a difference in a text report, characters. */
const LONGEST_OUTCOME = 500

/** How many statements of a replay have each verdict, as text. */
export function replayText({ counts, speeds: { slower, faster } }: Tally): string {
  const timed = { 'slower there': slower, 'faster there': faster }
  const all = [...Object.entries(counts), ...Object.entries(timed).filter(([, count]) => count > 0)]
  return all.length === 0 ? 'No statement was replayed\n' : countsText(all)
}

/** How much of the load a sample covers, as text. */
export function coverageText(coverage: SampleCoverage): string {
  const { statements, fingerprints, allFingerprints, share, firstShare } = coverage
  const first = statements > FIRST_STATEMENTS ? `, the first ${FIRST_STATEMENTS} of them ${percentOf(firstShare)}` : ''
  const [some, all] = [fingerprints, allFingerprints].map((count) => count.toLocaleString('en-US'))
  return `${some} fingerprints of ${all} cover ${percentOf(share)} of CPU with ${statements} statements${first}\n`
}

/** Rounded down: only a whole sample covers 100 %. */
function percentOf(share: number): string {
  return `${Math.floor(share * 1000 + 1e-9) / 10} %`
}

/** The findings of a shadow as text. */
export function shadowText(tally: Tally, rest: ShadowRest): string {
  const { notSampled, ...others } = rest
  const counts = [...Object.entries(tally.counts), ...Object.entries({ ...others, 'not sampled': notSampled })]
  const breakdown = tally.breakdown()
  const parts = [
    countsText(counts),
    latencyText('Latency', breakdown.total),
    ...fingerprintTexts(breakdown),
    ...differencesOf(tally).slice(0, SHOWN).map(differenceText),
  ]
  return parts.join('')
}

function countsText(counts: readonly (readonly [string, number])[]): string {
  const width = Math.max(...counts.map(([name]) => name.length))
  return counts.map(([name, count]) => `${name.padEnd(width)}  ${count}\n`).join('')
}

function latencyText(name: string, { latency }: BreakdownPart): string {
  if (!latency) return ''
  const { here, there, ratio } = latency
  const pair = (at: 'p50' | 'p95') =>
    `${at} ${here[at].toFixed(1)} ms recorded, ${there[at].toFixed(1)} ms there (${ratio[at].toFixed(2)}x)`
  return `${name}: ${pair('p50')}; ${pair('p95')}\n`
}

/** Fingerprints with differences, then those that the other server slows down most. */
function fingerprintTexts({ fingerprints }: Breakdown): string[] {
  const all = Object.entries(fingerprints)
  const bad = all
    .filter(([, { verdicts }]) => differentIn(verdicts) > 0)
    .toSorted(([, a], [, b]) => differentIn(b.verdicts) - differentIn(a.verdicts))
  const slow = all
    .filter(([, { latency }]) => latency !== undefined && latency.ratio.p50 > 1)
    .toSorted(([, a], [, b]) => (b.latency?.ratio.p50 ?? 0) - (a.latency?.ratio.p50 ?? 0))
  return [
    ...bad
      .slice(0, SHOWN)
      .map(([name, { statements, verdicts }]) => `${name}: ${differentIn(verdicts)} of ${statements} are different\n`),
    ...slow.slice(0, SHOWN).map(([name, part]) => latencyText(name, part)),
  ]
}

/** The first statements on which the sides differ. */
function differencesOf(tally: Tally): readonly ReplayLine[] {
  return BAD_VERDICTS.flatMap((verdict) => tally.linesOf(verdict))
}

function differenceText(line: ReplayLine): string {
  const there = line.thereQueryId === undefined ? '' : `, there ${line.thereQueryId}`
  // Messages of a server may have control characters of a terminal.
  const outcome = outcomeText(line)
    .slice(0, LONGEST_OUTCOME)
    .replaceAll(/\p{Cc}+/gu, ' ')
  return `${line.verdict} ${line.queryId}${there}: ${outcome}\n`
}

/** Writes the page and the JSON, as far as the flags name files for them. */
export function writeReports(
  { report, summary }: ReportFiles,
  { from, to }: Addresses,
  tally: Tally,
  rest?: ShadowRest,
): void {
  const at = new Date().toISOString()
  if (report !== undefined) writePrivate(report, reportPage({ baseline: from, against: to, at, tally }))
  if (summary === undefined) return
  const found = {
    from,
    to,
    at,
    ...(rest && { queries: rest }),
    ...tally.breakdown(),
    differences: differencesOf(tally),
  }
  writePrivate(summary, `${JSON.stringify(found, undefined, 2)}\n`)
}

/** Replaces a file at once. A user who could read an existing file cannot read this one. */
export function writePrivate(path: string, text: string): void {
  const made = `${path}.new`
  rmSync(made, { force: true })
  writeFileSync(made, text, { mode: 0o600, flag: 'wx' })
  renameSync(made, path)
}
