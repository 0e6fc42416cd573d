import type { Outcome } from '../chaos/outcome.ts'
import type { WriteOutcome } from '../chaos/writing-client.ts'
import { outages, type DoneSoakFault, type SoakFault } from './faults.ts'

/** A critical alert that fired, and the times when it did. */
export interface FiredAlert {
  readonly name: string
  readonly labels: string
  /** Milliseconds since the clients began. */
  readonly fromMs: number
  toMs: number
}

/** A change of the writer, at the time when the soak first saw it. */
export interface EpochChange {
  readonly epoch: number
  /** Milliseconds since the clients began. */
  readonly atMs: number
}

/** The result of a statement, as its client saw it. */
interface Ended {
  /** `clean`: the statement ended with a documented error; `cut`: the client gave up because a request failed. */
  readonly result: 'right' | 'clean' | 'cut' | 'left' | 'wrong'
  readonly why: string
  readonly fromMs: number
  readonly toMs: number
}

interface Explained {
  readonly by: readonly SoakFault[]
  /** The longest time from the fault to the alert: the range of its rule plus the rule's wait. */
  readonly forMs: number
  /** The shortest time of the fault with its recovery that can fire the alert. */
  readonly leastMs?: number
}

/** The critical alerts that faults cause; all other critical alerts must never fire in a soak. */
const explains: Readonly<Record<string, Explained>> = {
  QuipuStatementBudgetBurn: { by: ['Kafka down', 'Postgres down', 'disk full'], forMs: 3_600_000 },
  QuipuFirstRowsBudgetBurn: {
    by: ['Kafka down', 'Postgres down', 'disk full', 'processors busy', 'kill writer'],
    forMs: 3_600_000,
  },
  QuipuNoActiveWorker: { by: ['Kafka down', 'Postgres down'], forMs: 120_000 },
  QuipuWriterCount: {
    by: ['Kafka down', 'Postgres down', 'kill writer', 'kill supervisor', 'processors busy'],
    forMs: 60_000,
    leastMs: 30_000,
  },
  // Its range joins two outages that are less than 2 minutes apart.
  QuipuAppendFailing: { by: ['Kafka down', 'Postgres down'], forMs: 120_000 },
  QuipuEventLogDown: { by: ['Kafka down'], forMs: 120_000 },
  QuipuProjectionStuck: { by: ['Postgres down'], forMs: 420_000 },
  // These alerts count kills, which the soak itself causes.
  QuipuEpochFlapping: { by: ['kill writer', 'kill supervisor'], forMs: 1_000_000 },
  QuipuRestartLoop: { by: ['kill writer', 'kill stand-by', 'kill worker', 'kill supervisor'], forMs: 1_000_000 },
  QuipuEngineCrashing: { by: ['kill engine', 'kill launcher', 'kill worker'], forMs: 1_000_000 },
}

const MOST_FAILED = 0.02
/** A statement belongs to a fault if it began at most this long after its recovery. */
const WAKE_MS = 2_000
/** On a busy machine the soak sees a new epoch this late. */
const SEEN_MS = 15_000

export interface SoakRecord {
  readonly outcomes: readonly Outcome[]
  readonly writes: readonly WriteOutcome[]
  readonly faults: readonly DoneSoakFault[]
  readonly alerts: readonly FiredAlert[]
  readonly epochs: readonly EpochChange[]
  /** Problems that the other checks found, a line each. */
  readonly found: readonly string[]
}

export interface Verdict {
  readonly table: string
  /** Problems that no slowness of the machine excuses, a line each. */
  readonly wrong: readonly string[]
  /** Critical alerts that no fault of the run explains. */
  readonly falseAlerts: readonly FiredAlert[]
  /** Changes of the writer that no kill of a coordinator explains. */
  readonly tradedEpochs: readonly EpochChange[]
  /** Statements that ended while all dependencies were there, and the number of those that failed. */
  readonly fair: { readonly ended: number; readonly failed: number }
}

/** Judges what clients, alerts and checks saw. */
export function verdictOf({ outcomes, writes, faults, alerts, epochs, found }: SoakRecord): Verdict {
  const ended = [...outcomes.map(ofOutcome), ...writes.map(ofWrite)]
  const wrong = ended.filter(({ result }) => result === 'wrong').map(({ why, fromMs }) => `at ${at(fromMs)}: ${why}`)
  const dead = faults.filter(({ kind, missed }) => outages.has(kind) && missed === undefined)
  const fair = ended.filter((one) => one.result !== 'left' && !dead.some((fault) => touches(fault, one)))
  wrong.push(...found)
  if (ended.every(({ result }) => result !== 'right')) wrong.push('no statement was answered right')
  return {
    table: tableOf(ended, faults, fair, alerts),
    wrong,
    falseAlerts: alerts.filter((alert) => !isExplained(alert, faults)),
    tradedEpochs: epochs.filter(({ atMs }) => !faults.some((fault) => killsWriter(fault, atMs))),
    fair: { ended: fair.length, failed: fair.filter(isFailure).length },
  }
}

/** Returns all violations, a line each; empty if the cluster held. */
export function violationsOf({ wrong, falseAlerts, tradedEpochs, fair }: Verdict): readonly string[] {
  const most = fair.ended * MOST_FAILED
  return [
    ...wrong,
    ...falseAlerts.map(
      ({ name, labels, fromMs }) => `critical alert ${name} ${labels} fired at ${at(fromMs)} without an outage`,
    ),
    ...tradedEpochs.map(({ epoch, atMs }) => `epoch ${epoch} began at ${at(atMs)} though nobody killed the writer`),
    ...(fair.failed > most
      ? [`${fair.failed} of ${fair.ended} statements failed while all dependencies were there`]
      : []),
  ]
}

/** Returns the statements that failed although no fault touched them, a line each. */
export function failuresWithoutFault({ outcomes, writes, faults }: SoakRecord): readonly string[] {
  return [...outcomes.map(ofOutcome), ...writes.map(ofWrite)]
    .filter((one) => isFailure(one) && !faults.some((fault) => touches(fault, one)))
    .map(({ why, fromMs, toMs }) => `${at(fromMs)} to ${at(toMs)}: ${why}`)
}

const isFailure = ({ result }: Ended): boolean => result === 'clean' || result === 'cut'

function ofOutcome({ result, why = '', fromMs, toMs, name, client, id, behaviour }: Outcome): Ended {
  const cut = result === 'left' && why !== ''
  const text = `${client} (${behaviour}) ${name} ${id ?? ''}: ${why}`
  return { result: cut ? 'cut' : result, why: text, fromMs, toMs }
}

/** Wrong writes count as `left` here, because `checkWrites` reports them. */
function ofWrite({ end, why, wrong, fromMs, toMs, client, behaviour }: WriteOutcome): Ended {
  const times = { fromMs, toMs, why: `${client} (${behaviour}): ${why ?? ''}` }
  if (wrong) return { ...times, result: 'left' }
  if (end === 'done') return { ...times, result: 'right' }
  const own = end === 'unknown' || why === 'nobody followed' || why === 'USER_CANCELED'
  return { ...times, result: own ? 'left' : 'clean' }
}

function touches({ fromMs, toMs, recoveryMs }: DoneSoakFault, one: Pick<Ended, 'fromMs' | 'toMs'>): boolean {
  return one.fromMs <= toMs + recoveryMs + WAKE_MS && one.toMs >= fromMs
}

function isExplained({ name, fromMs }: FiredAlert, faults: readonly DoneSoakFault[]): boolean {
  const { by, forMs, leastMs = 0 } = explains[name] ?? { by: [], forMs: 0 }
  return faults.some(({ kind, missed, fromMs: from, toMs, recoveryMs }) => {
    const until = toMs + recoveryMs
    return (
      missed === undefined && by.includes(kind) && until - from >= leastMs && from <= fromMs && fromMs <= until + forMs
    )
  })
}

function killsWriter({ kind, target, fromMs, toMs, recoveryMs }: DoneSoakFault, atMs: number): boolean {
  const kills = kind === 'kill writer' || (kind === 'kill supervisor' && target.startsWith('coordinator'))
  return kills && fromMs <= atMs && atMs <= toMs + recoveryMs + SEEN_MS
}

function tableOf(
  ended: readonly Ended[],
  faults: readonly DoneSoakFault[],
  fair: readonly Ended[],
  alerts: readonly FiredAlert[],
): string {
  const counts = (of: readonly Ended[]): string[] => {
    const count = (result: Ended['result']): string => String(of.filter((one) => one.result === result).length)
    return [String(of.length), count('right'), count('clean'), count('cut'), count('left'), count('wrong')]
  }
  const lines = faults.map((fault) => {
    const { kind, target, fromMs, toMs, recoveryMs, missed } = fault
    const during = ended.filter((one) => touches(fault, one))
    const away = `${((toMs - fromMs) / 1000).toFixed(0)} s`
    const recovery = missed ?? `${(recoveryMs / 1000).toFixed(1)} s`
    const fired = alerts.filter((one) => one.fromMs >= fromMs && one.fromMs <= toMs + recoveryMs + 60_000)
    return [
      kind,
      target,
      at(fromMs),
      away,
      recovery,
      ...counts(during),
      [...new Set(fired.map(({ name }) => name))].join(' '),
    ]
  })
  const calm = ended.filter((one) => !faults.some((fault) => touches(fault, one)))
  const head = [
    'fault',
    'to',
    'at',
    'lasted',
    'right after',
    'statements',
    'right',
    'clean error',
    'cut',
    'left',
    'wrong',
    'alerts',
  ]
  const rest = (name: string, of: readonly Ended[]): string[] => [name, '', '', '', '', ...counts(of), '']
  return [
    head,
    head.map(() => '---'),
    ...lines,
    rest('no fault', calm),
    rest('dependencies there', fair),
    rest('all', ended),
  ]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n')
}

function at(ms: number): string {
  const seconds = Math.round(ms / 1000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}
