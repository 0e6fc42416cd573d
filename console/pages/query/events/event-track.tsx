import { countIn, type EventSummary } from '../../../api/event-summary.ts'
import classes from './event-track.module.css'

/** When events of some kinds happened, between the first and the last event: a bar's height is the number of events in its part of the time. */
export function EventTrack({
  summary: { parts },
  kinds,
  asOf,
}: {
  readonly summary: EventSummary
  readonly kinds: readonly string[]
  readonly asOf: number | undefined
}) {
  const bars = parts.map((part) => ({ ...part, count: countIn(part, kinds) })).filter(({ count }) => count > 0)
  const all = bars.reduce((sum, { count }) => sum + count, 0)
  if (all < 2) return null
  const columns = (parts.at(-1)?.index ?? 0) + 1
  const most = bars.reduce((high, { count }) => Math.max(high, count), 0)
  return (
    <svg
      className={classes.track}
      viewBox={`0 0 ${columns} 20`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${all} events over time`}
    >
      {bars.map(({ index, first, count }) => {
        const height = 2 + (18 * count) / most
        return (
          <rect
            key={index}
            x={index}
            y={20 - height}
            width={0.8}
            height={height}
            className={asOf !== undefined && first > asOf ? classes.future : classes.past}
          />
        )
      })}
    </svg>
  )
}
