import { shownDuration } from './units.ts'
import classes from './time-bars.module.css'

/** A span of time in a row of TimeBars. Times are milliseconds since the epoch. */
export interface TimeBar {
  readonly name: string
  readonly from: number
  readonly to: number
  readonly kind?: 'wait' | 'work' | 'failed'
}

/**
 * Spans below each other on a common axis of time, from the earliest beginning to the latest end.
 * @param label the list's name for screen readers
 */
export function TimeBars({ label, bars }: { readonly label: string; readonly bars: readonly TimeBar[] }) {
  const begin = bars.reduce((least, { from }) => Math.min(least, from), Infinity)
  const end = bars.reduce((most, { to }) => Math.max(most, to), -Infinity)
  const length = Math.max(end - begin, 0.001)
  return (
    <ol className={classes.bars} aria-label={label} data-explains>
      {bars.map((bar, index) => {
        const name = bar.kind === 'failed' ? `${bar.name} failed` : bar.name
        const took = shownDuration((bar.to - bar.from) * 1e6)
        const after = shownDuration((bar.from - begin) * 1e6)
        return (
          <li key={`${index}:${bar.name}`} className={classes.row} title={`${name}: ${took}, after ${after}`}>
            <span className={classes.name}>{name}</span>
            <span className={classes.track}>
              <span
                className={classes[bar.kind ?? 'work']}
                style={{
                  left: `${(100 * (bar.from - begin)) / length}%`,
                  width: `max(2px, ${(100 * (bar.to - bar.from)) / length}%)`,
                }}
              />
            </span>
            <span className={classes.figure}>{took}</span>
          </li>
        )
      })}
    </ol>
  )
}
