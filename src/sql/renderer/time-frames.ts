import type { BoundFrame, FrameEnd } from '../analyzer/tree.ts'
import { integer, sql, type Sql } from '../../duckdb/text/sql.ts'
import { isFine } from '../types/duckdb-representation.ts'
import { FRAME_ENDS } from './frame-offset.ts'
import type { SqlType } from '../types/sql-type.ts'

/** A frame, and for which rows it is: for those that no earlier one is for. */
interface FrameOfRows {
  /** Undefined: all others. */
  readonly when: Sql | undefined
  readonly frame: Sql
}

/** What a RANGE frame over times is made of: numbers of one unit, the key between 0 and a day. */
export interface TimeFrame {
  readonly key: Sql
  readonly descending: boolean
  readonly start: TimeEnd
  readonly end: TimeEnd
}

interface TimeEnd {
  readonly type: FrameEnd['type']
  /** Of `n PRECEDING` and `n FOLLOWING`: less than a day. */
  readonly offset: Sql | undefined
}

/** Whether the ends of a frame are times that go on at midnight. */
export function isTimeFrame({ type, start, end }: BoundFrame, sorted: SqlType | undefined): boolean {
  const isTime = sorted?.kind === 'time' || sorted?.kind === 'time with time zone'
  return isTime && type === 'RANGE' && (start.value !== undefined || end.value !== undefined)
}

/** A day in the unit that a time is sorted by: microseconds, or picoseconds. */
export function dayLength(type: SqlType): bigint {
  return isFine(type) ? 86_400_000_000_000_000n : 86_400_000_000n
}

/**
 * The frames of a window over times. As in Trino, an end beyond midnight is the time of day that it is there: before the row
 * where one comes after it, and after the row where one comes before it. What begins behind its end has no rows.
 */
export function timeFrames(frame: TimeFrame, day: bigint): readonly FrameOfRows[] {
  const { start, end } = frame
  const starts = beyondMidnight(frame, start, day)
  const ends = beyondMidnight(frame, end, day)
  const [from, to] = [moved(start, day), moved(end, day)]
  return [
    ...(starts && ends ? [{ when: sql`${starts} AND ${ends}`, frame: between(from, to, day) }] : []),
    ...(starts ? [{ when: starts, frame: between(from, end, day) }] : []),
    ...(ends ? [{ when: ends, frame: between(start, to, day) }] : []),
    { when: undefined, frame: between(start, end, day) },
  ]
}

function beyondMidnight({ key, descending }: TimeFrame, { type, offset }: TimeEnd, day: bigint): Sql | undefined {
  if (offset === undefined) return undefined
  return (type === 'PRECEDING') === descending ? sql`${key} + ${offset} >= ${integer(day)}` : sql`${key} < ${offset}`
}

/** An end on the other side of midnight. */
function moved({ type, offset }: TimeEnd, day: bigint): TimeEnd {
  if (offset === undefined) return { type, offset }
  return { type: type === 'PRECEDING' ? 'FOLLOWING' : 'PRECEDING', offset: sql`(${integer(day)} - ${offset})` }
}

const ORDER = ['UNBOUNDED_PRECEDING', 'PRECEDING', 'CURRENT_ROW', 'FOLLOWING', 'UNBOUNDED_FOLLOWING'] as const

function between(start: TimeEnd, end: TimeEnd, day: bigint): Sql {
  // No two times are a day apart.
  if (ORDER.indexOf(start.type) > ORDER.indexOf(end.type)) {
    return sql`RANGE BETWEEN ${integer(day)} FOLLOWING AND ${integer(day)} FOLLOWING`
  }
  return sql`RANGE BETWEEN ${endText(start)} AND ${endText(end)}`
}

function endText({ type, offset }: TimeEnd): Sql {
  const end = FRAME_ENDS[type]
  return offset === undefined ? end : sql`${offset} ${end}`
}
