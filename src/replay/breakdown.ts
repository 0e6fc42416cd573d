import { DurationHistogram } from './duration-histogram.ts'
import type { ReplayLine, VerdictCounts, VerdictName } from './replay-line.ts'

/** Times of a side, milliseconds. */
interface Times {
  readonly p50: number
  readonly p95: number
}

/** The findings about some statements. */
export interface BreakdownPart {
  readonly statements: number
  readonly verdicts: VerdictCounts
  /** Over the statements that ran on the other server; absent if none did, or if their recorded times are not known. */
  readonly latency?: { readonly statements: number; readonly here: Times; readonly there: Times; readonly ratio: Times }
}

/** The findings of a replay: all, and by the fingerprint, the program and the user of the statements. */
export interface Breakdown {
  readonly total: BreakdownPart
  readonly fingerprints: Readonly<Record<string, BreakdownPart>>
  readonly apps: Readonly<Record<string, BreakdownPart>>
  readonly users: Readonly<Record<string, BreakdownPart>>
}

/** The most fingerprints, programs and users that have an entry; further ones count as `other`. */
const MOST_ENTRIES = 1000
const OTHER = 'other'

class Part {
  readonly #verdicts: Partial<Record<VerdictName, number>> = {}
  readonly #here = new DurationHistogram()
  readonly #there = new DurationHistogram()
  #statements = 0

  add({ verdict, recordedMs, hereMs, thereMs }: ReplayLine): void {
    this.#statements++
    this.#verdicts[verdict] = (this.#verdicts[verdict] ?? 0) + 1
    const before = recordedMs ?? hereMs
    if (before === undefined || thereMs === undefined) return
    this.#here.add(before)
    this.#there.add(thereMs)
  }

  get findings(): BreakdownPart {
    const [here, there] = [timesOf(this.#here), timesOf(this.#there)]
    const known = { statements: this.#statements, verdicts: { ...this.#verdicts } }
    if (!here || !there) return known
    const ratio = { p50: there.p50 / here.p50, p95: there.p95 / here.p95 }
    return { ...known, latency: { statements: this.#there.count, here, there, ratio } }
  }
}

function timesOf(durations: DurationHistogram): Times | undefined {
  const [p50, p95] = [durations.quantile(0.5), durations.quantile(0.95)]
  return p50 === undefined || p95 === undefined ? undefined : { p50, p95 }
}

/** Groups the lines of a replay, in bounded memory. */
export class LineGroups {
  readonly #total = new Part()
  readonly #groups = {
    fingerprints: new Map<string, Part>(),
    apps: new Map<string, Part>(),
    users: new Map<string, Part>(),
  }

  add(line: ReplayLine): void {
    this.#total.add(line)
    const { fingerprints, apps, users } = this.#groups
    for (const [group, name] of [
      [fingerprints, line.fingerprint],
      [apps, line.app],
      [users, line.user],
    ] as const)
      if (name !== undefined) partOf(group, name).add(line)
  }

  breakdown(): Breakdown {
    const { fingerprints, apps, users } = this.#groups
    return {
      total: this.#total.findings,
      fingerprints: findingsOf(fingerprints),
      apps: findingsOf(apps),
      users: findingsOf(users),
    }
  }
}

function partOf(group: Map<string, Part>, name: string): Part {
  const key = group.has(name) || group.size < MOST_ENTRIES ? name : OTHER
  const part = group.get(key) ?? new Part()
  group.set(key, part)
  return part
}

function findingsOf(group: ReadonlyMap<string, Part>): Readonly<Record<string, BreakdownPart>> {
  return Object.fromEntries([...group].map(([name, part]) => [name, part.findings]))
}
