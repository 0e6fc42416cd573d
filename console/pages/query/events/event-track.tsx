import type { QueryEvent } from '../../../api/query-events.ts'
import classes from './event-track.module.css'

/** Columns of the track. Several events may share one. */
const COLUMNS = 200

/** When events happened, between the first and the last: a bar's height is the number of events in its part of the time. */
export function EventTrack({
  events,
  asOf,
}: {
  readonly events: readonly QueryEvent[]
  readonly asOf: number | undefined
}) {
  const [first, last] = [events[0], events.at(-1)]
  if (!first || !last || first === last) return null
  const begin = Date.parse(first.time)
  const length = Math.max(1, Date.parse(last.time) - begin)
  const counts = new Map<number, { count: number; future: boolean }>()
  for (const { time, sequence } of events) {
    const column = Math.min(COLUMNS - 1, Math.floor((COLUMNS * (Date.parse(time) - begin)) / length))
    const bar = counts.get(column) ?? { count: 0, future: asOf !== undefined && sequence > asOf }
    bar.count++
    counts.set(column, bar)
  }
  const most = Math.max(...[...counts.values()].map(({ count }) => count))
  return (
    <svg
      className={classes.track}
      viewBox={`0 0 ${COLUMNS} 20`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${events.length} events over time`}
    >
      {[...counts].map(([column, { count, future }]) => {
        const height = 2 + (18 * count) / most
        return (
          <rect
            key={column}
            x={column}
            y={20 - height}
            width={0.8}
            height={height}
            className={future ? classes.future : classes.past}
          />
        )
      })}
    </svg>
  )
}
