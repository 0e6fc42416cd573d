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
/** Faults of clusters behind the server, and between it and them. */
export const clusterFaults = [
  'cut answers',
  'bad gateway',
  'slow answers',
  'refuse cluster',
  'mute cluster',
  'forget queries',
  'kill cluster',
  'kill cluster worker',
  'fill cluster disk',
] as const
/** Faults of a run with clusters: the coordinator of the gateway is killed most often. */
const gatewayFaults = [
  'kill coordinator',
  'kill coordinator',
  'kill coordinator',
  'stop coordinator',
  'restart',
] as const

export type FaultKind =
  | (typeof processFaults)[number]
  | (typeof serverFaults)[number]
  | (typeof brokerFaults)[number]
  | (typeof diskFaults)[number]
  | (typeof clusterFaults)[number]

/** The moments in the life of a statement that clients report. */
export const eventPoints = ['posted', 'first answer', 'first page', 'page', 'canceling', 'ended'] as const
/** The moments that the proxies before clusters report. */
const clusterPoints = ['cluster asked', 'cluster answered'] as const
export type EventPoint = (typeof eventPoints)[number] | (typeof clusterPoints)[number]

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

/** The plan of a seed with clusters behind the server: a pure function of the seed. */
export function clusterPlanOf(seed: number, loadMs: number): Plan {
  const random = createRandom(seed, 'cluster plan')
  const kinds: readonly FaultKind[] = [...clusterFaults, ...gatewayFaults, ...gatewayFaults]
  const points: readonly EventPoint[] = [...eventPoints, ...clusterPoints, ...clusterPoints]
  // About a fault in each 700 ms: a coordinator needs about as long to start again.
  const faults = Array.from({ length: random.whole(3, 3 + Math.ceil(loadMs / 700)) }, (): PlannedFault => {
    const isTimed = random.chance(0.3)
    return {
      kind: random.pick(kinds),
      when: isTimed ? { atMs: random.whole(50, loadMs) } : { point: random.pick(points), nth: random.whole(1, 25) },
      forMs: random.whole(50, 1_500),
      choice: random.next(),
      shiftMs: 0,
    }
  })
  return {
    seed,
    log: 'postgres',
    workers: 1,
    pageBytes: 64 * 1024,
    python: false,
    waitsForPages: false,
    ownDisk: false,
    faults,
  }
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
