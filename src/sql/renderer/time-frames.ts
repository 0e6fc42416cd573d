import type { BoundFrame, FrameEnd } from '../analyzer/tree.ts'
import { integer, sql, type Sql } from '../../duckdb/text/sql.ts'
import { isFine } from '../types/duckdb-representation.ts'
import { FRAME_BOUNDS } from './frame-offset.ts'
import type { SqlType } from '../types/sql-type.ts'

/** A frame for some of the rows. A row uses the first frame with a condition that is true for the row. */
interface FrameOfRows {
  /** Undefined in the last frame: all other rows use it. */
  readonly when: Sql | undefined
  readonly frame: Sql
}

/** A RANGE frame over times. All numbers have the same unit; the key is between 0 and one day. */
export interface TimeFrame {
  readonly key: Sql
  readonly descending: boolean
  readonly start: TimeEnd
  readonly end: TimeEnd
}

interface TimeEnd {
  readonly type: FrameEnd['type']
  /** The distance of `n PRECEDING` and `n FOLLOWING`: less than a day. */
  readonly offset: Sql | undefined
}

/** Whether the ends of a frame are times that wrap at midnight. */
export function isTimeFrame({ type, start, end }: BoundFrame, sorted: SqlType | undefined): boolean {
  const isTime = sorted?.kind === 'time' || sorted?.kind === 'time with time zone'
  return isTime && type === 'RANGE' && (start.value !== undefined || end.value !== undefined)
}

/** The length of a day in the unit of the sort key: microseconds or picoseconds. */
export function dayLength(type: SqlType): bigint {
  return isFine(type) ? 86_400_000_000_000_000n : 86_400_000_000n
}

/**
 * The frames of a window over times. As in Trino, a frame end beyond midnight wraps to the time of day on the other
 * side: an end after the row may then lie before it, and vice versa. A frame that starts after its end has no rows.
 */
export function timeFrames(frame: TimeFrame, day: bigint): readonly FrameOfRows[] {
  const { start, end } = frame
  const crossesStart = beyondMidnight(frame, start, day)
  const crossesEnd = beyondMidnight(frame, end, day)
  const [from, to] = [moved(start, day), moved(end, day)]
  return [
    ...(crossesStart && crossesEnd
      ? [{ when: sql`${crossesStart} AND ${crossesEnd}`, frame: between(from, to, day) }]
      : []),
    ...(crossesStart ? [{ when: crossesStart, frame: between(from, end, day) }] : []),
    ...(crossesEnd ? [{ when: crossesEnd, frame: between(start, to, day) }] : []),
    { when: undefined, frame: between(start, end, day) },
  ]
}

function beyondMidnight({ key, descending }: TimeFrame, { type, offset }: TimeEnd, day: bigint): Sql | undefined {
  if (offset === undefined) return undefined
  return (type === 'PRECEDING') === descending ? sql`${key} + ${offset} >= ${integer(day)}` : sql`${key} < ${offset}`
}

/** The frame end on the other side of midnight. */
function moved({ type, offset }: TimeEnd, day: bigint): TimeEnd {
  if (offset === undefined) return { type, offset }
  return { type: type === 'PRECEDING' ? 'FOLLOWING' : 'PRECEDING', offset: sql`(${integer(day)} - ${offset})` }
}

const ORDER = ['UNBOUNDED_PRECEDING', 'PRECEDING', 'CURRENT_ROW', 'FOLLOWING', 'UNBOUNDED_FOLLOWING'] as const

function between(start: TimeEnd, end: TimeEnd, day: bigint): Sql {
  // An empty frame: no two times are a day apart.
  if (ORDER.indexOf(start.type) > ORDER.indexOf(end.type)) {
    return sql`RANGE BETWEEN ${integer(day)} FOLLOWING AND ${integer(day)} FOLLOWING`
  }
  return sql`RANGE BETWEEN ${endText(start)} AND ${endText(end)}`
}

function endText({ type, offset }: TimeEnd): Sql {
  const end = FRAME_BOUNDS[type]
  return offset === undefined ? end : sql`${offset} ${end}`
}
