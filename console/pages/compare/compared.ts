import type { QueryInfo } from '../../../src/protocol/info/schemas/query.ts'
import { bytesOf, countedAs, nanosOf, shownCount, shownDuration, shownText } from '../../parts/units.ts'
import { allOperators, type OperatorFigures } from '../query/operators/operator-figures.ts'

/** A figure of two queries. */
export interface Compared {
  readonly name: string
  readonly a: string
  readonly b: string
  /** The second divided by the first; undefined where one of them is 0 or no number. */
  readonly factor: number | undefined
}

const DURATIONS = {
  Elapsed: 'elapsedTime',
  Queued: 'queuedTime',
  Planning: 'planningTime',
  CPU: 'totalCpuTime',
  Scheduled: 'totalScheduledTime',
  Blocked: 'totalBlockedTime',
} as const
const SIZES = {
  'Peak memory': 'peakTotalMemoryReservation',
  Spilled: 'spilledDataSize',
  'Bytes read': 'rawInputDataSize',
  'Bytes of the result': 'outputDataSize',
} as const
const COUNTS = {
  'Rows read': 'rawInputPositions',
  'Rows of the result': 'outputPositions',
  Splits: 'totalSplits',
  Tasks: 'totalTasks',
} as const

/** The figures of two queries beside each other, and the parts of them that are texts. */
export function comparedFigures(a: QueryInfo, b: QueryInfo): readonly Compared[] {
  const text = (name: string, of: (query: QueryInfo) => string | undefined): Compared => ({
    name,
    a: of(a) ?? '',
    b: of(b) ?? '',
    factor: undefined,
  })
  return [
    text('State', (query) => query.state),
    text('Error', (query) => query.errorCode?.name),
    text('User', (query) => query.session.user),
    text('Resource group', (query) => query.resourceGroupId.join(' › ')),
    text('Route', (query) => query.route?.cluster ?? query.route?.plan),
    ...[...Object.entries(DURATIONS), ...Object.entries(SIZES)].map(([name, field]) => {
      const [one, other] = [a.queryStats[field], b.queryStats[field]]
      return { name, a: shownText(one), b: shownText(other), factor: factorOf(numberOf(one), numberOf(other)) }
    }),
    ...Object.entries(COUNTS).map(([name, field]) => {
      const [one, other] = [a.queryStats[field], b.queryStats[field]]
      return { name, a: shownCount(one), b: shownCount(other), factor: factorOf(one, other) }
    }),
  ]
}

/** The operators of two queries by stage, position and name; an operator that only one of them has is there, too. */
export function comparedOperators(a: QueryInfo, b: QueryInfo): readonly Compared[] {
  const first = byPosition(allOperators(a.outputStage))
  const second = byPosition(allOperators(b.outputStage))
  return [...new Set([...first.keys(), ...second.keys()])].map((name) => {
    const [one, other] = [first.get(name), second.get(name)]
    return { name, a: shownOperator(one), b: shownOperator(other), factor: factorOf(one?.nanos, other?.nanos) }
  })
}

function byPosition(operators: readonly OperatorFigures[]): ReadonlyMap<string, OperatorFigures> {
  return new Map(
    operators.map((operator) => {
      const [, pipeline, position] = operator.id.split('/')
      return [`Stage ${operator.stage}, pipeline ${pipeline}, ${position}: ${operator.name}`, operator]
    }),
  )
}

function shownOperator(operator: OperatorFigures | undefined): string {
  if (!operator) return 'is not there'
  return `${countedAs(operator.rowsOut, 'row')}, ${operator.nanos === undefined ? 'time not measured' : shownDuration(operator.nanos)}`
}

function numberOf(text: string): number | undefined {
  return nanosOf(text) ?? bytesOf(text)
}

function factorOf(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined || a === 0 || b === 0 ? undefined : b / a
}
