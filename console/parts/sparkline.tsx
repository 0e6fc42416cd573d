import { Explained } from './explained.tsx'
import type { Explanation } from './explanations.ts'
import { HEIGHT, mostOf, sparklinePath, WIDTH, type Sample } from './sparkline-path.ts'
import classes from './sparkline.module.css'

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
  const last = samples.at(-1)
  if (!last) return null
  const most = mostOf(samples)
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
        <path d={sparklinePath(samples)} />
      </svg>
    </figure>
  )
}
