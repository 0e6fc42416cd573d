import { unreachable } from '../../src/shared/unreachable.ts'
import { createRandom } from './random.ts'

export const processFaults = [
  'kill coordinator',
  'stop coordinator',
  'kill worker',
  'stop worker',
  'kill engine',
  'stop engine',
] as const

export const serverFaults = [
  'kill supervisor',
  'stop supervisor',
  'restart',
  'hang coordinator',
  'slow coordinator',
  'slow worker',
  'kill postgres',
  'stop postgres',
  'slow postgres',
  'restart postgres',
  'cut postgres sessions',
  'jump clock',
] as const

export const brokerFaults = ['kill broker', 'stop broker', 'slow broker'] as const
/** Faults of log and database together with kills of coordinators, so that a successor finds no log and no database. */
export const outageFaults = [
  'kill postgres',
  'stop postgres',
  'restart postgres',
  'cut postgres sessions',
  'kill coordinator',
] as const
export const diskFaults = ['fill disk', 'low disk'] as const

export type FaultKind =
  | (typeof processFaults)[number]
  | (typeof serverFaults)[number]
  | (typeof brokerFaults)[number]
  | (typeof diskFaults)[number]

/** The moments in the life of a statement that clients report. */
export const eventPoints = ['posted', 'first answer', 'first page', 'page', 'canceling', 'ended'] as const
export type EventPoint = (typeof eventPoints)[number]

export interface PlannedFault {
  readonly kind: FaultKind
  /** A time after the clients began, or the nth time that a client reaches an event point. */
  readonly when: { readonly atMs: number } | { readonly point: EventPoint; readonly nth: number }
  /** How long a stopped process stays stopped; kills take no time. */
  readonly forMs: number
  /** Selects one of several processes: a number in [0, 1). */
  readonly choice: number
  /** The jump of the clock, milliseconds. */
  readonly shiftMs: number
}

export interface Plan {
  readonly seed: number
  readonly log: 'postgres' | 'kafka'
  readonly workers: number
  readonly pageBytes: number
  /** Whether one of the clients is the published Python client. */
  readonly python: boolean
  /** Answers are kept for 25 s, and the run waits until workers have dropped their pages. */
  readonly waitsForPages: boolean
  /** Whether the data folder is on a separate disk that can be filled. */
  readonly ownDisk: boolean
  readonly faults: readonly PlannedFault[]
}

/** The faults that this machine and the options of the run allow. */
export interface Abilities {
  readonly log: 'postgres' | 'kafka' | 'mixed'
  readonly disk: boolean
  readonly faults: 'all' | 'processes' | 'outages'
}

const HOUR_MS = 3_600_000
const SHIFTS_MS = [-25 * HOUR_MS, -HOUR_MS, -30_000, -2_000, 2_000, 30_000, HOUR_MS, 25 * HOUR_MS]

/** The plan of a seed: a pure function of the seed and the abilities. */
export function planOf(seed: number, loadMs: number, can: Abilities): Plan {
  const random = createRandom(seed, 'plan')
  const log = can.log === 'mixed' ? (random.chance(0.3) ? 'kafka' : 'postgres') : can.log
  const workers = random.chance(0.3) ? 2 : 1
  const pageBytes = random.pick([64 * 1024, 256 * 1024, 1024 * 1024])
  const python = random.chance(0.35)
  const waitsForPages = random.chance(0.2)
  const ownDisk = random.chance(0.12) && can.disk && can.faults === 'all'
  const kinds = kindsOf(log, can.faults)
  const longestMs = can.faults === 'outages' ? 6_000 : 1_500
  const faults = Array.from({ length: random.whole(2, 4) }, (_, index): PlannedFault => {
    const kind = ownDisk && index === 0 ? random.pick(diskFaults) : random.pick(kinds)
    return {
      kind,
      when: random.chance(0.5)
        ? { atMs: random.whole(150, loadMs) }
        : { point: random.pick(eventPoints), nth: random.whole(1, 8) },
      forMs: random.whole(200, longestMs),
      choice: random.next(),
      shiftMs: random.pick(SHIFTS_MS),
    }
  })
  return { seed, log, workers, pageBytes, python, waitsForPages, ownDisk, faults }
}

function kindsOf(log: Plan['log'], faults: Abilities['faults']): readonly FaultKind[] {
  const broker = log === 'kafka' ? brokerFaults : []
  switch (faults) {
    case 'processes':
      return processFaults
    case 'outages':
      return [...outageFaults, ...broker]
    case 'all':
      return [...processFaults, ...processFaults, ...serverFaults, ...broker, ...broker]
    default:
      return unreachable(faults)
  }
}
