import { Explained } from './explained.tsx'
import type { Explanation } from './explanations.ts'
import classes from './sparkline.module.css'

/** A value at a time, milliseconds since the epoch. */
export interface Sample {
  readonly at: number
  readonly value: number
}

/** Height of the drawing, in units of its own. */
const HEIGHT = 30
const WIDTH = 100

/** A value over the last minutes as a line, with its newest and its largest value. */
export function Sparkline({
  name,
  explanation,
  samples,
  shown,
}: {
  readonly name: string
  readonly explanation: Explanation
  /** In the order of time. */
  readonly samples: readonly Sample[]
  readonly shown: (value: number) => string
}) {
  const [first, last] = [samples[0], samples.at(-1)]
  if (!first || !last) return null
  const most = Math.max(...samples.map(({ value }) => value))
  const span = Math.max(1, last.at - first.at)
  const points = samples.map(({ at, value }) => {
    const x = (WIDTH * (at - first.at)) / span
    return `${x.toFixed(2)},${(HEIGHT - (HEIGHT * value) / Math.max(most, 1e-9)).toFixed(2)}`
  })
  const text = `${shown(last.value)}, at most ${shown(most)}`
  return (
    <figure className={classes.figure}>
      <figcaption>
        <Explained by={explanation}>
          {name}: {text}
        </Explained>
      </figcaption>
      <svg
        className={classes.line}
        viewBox={`0 -1 ${WIDTH} ${HEIGHT + 2}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${name} over the last minutes: ${text}`}
      >
        <polyline points={points.join(' ')} />
      </svg>
    </figure>
  )
}
