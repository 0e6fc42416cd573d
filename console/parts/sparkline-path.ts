/** A value at a time, milliseconds since the epoch. */
export interface Sample {
  readonly at: number
  readonly value: number
}

/** Size of the drawing, in units of its own. */
export const WIDTH = 100
export const HEIGHT = 30

/**
 * The path of a line through samples: the first is at the left edge, the last at the right edge, 0 at the bottom and the
 * largest value at the top. Values that are not finite leave a gap. A single value is a line of the whole width.
 * @param samples in the order of time
 * @returns the attribute `d` of an SVG path; empty without values
 */
export function sparklinePath(samples: readonly Sample[]): string {
  const values = samples.filter(isDrawn)
  const [first, last] = [values[0], values.at(-1)]
  if (!first || !last) return ''
  const most = mostOf(samples)
  const y = (value: number): string => (HEIGHT - HEIGHT * (most > 0 ? Math.max(0, value) / most : 0)).toFixed(2)
  if (first === last) return `M0,${y(first.value)}H${WIDTH}`
  const span = Math.max(1, last.at - first.at)
  return samples
    .flatMap((sample, index) => {
      if (!isDrawn(sample)) return []
      const [before, after] = [samples[index - 1], samples[index + 1]].map((other) => other && isDrawn(other))
      const x = ((WIDTH * (sample.at - first.at)) / span).toFixed(2)
      // A value between two gaps is a dot.
      return `${before ? 'L' : 'M'}${x},${y(sample.value)}${before || after ? '' : 'h0'}`
    })
    .join('')
}

/** The largest finite value; 0 if there is none above. */
export function mostOf(samples: readonly Sample[]): number {
  return samples.reduce((most, sample) => (isDrawn(sample) ? Math.max(most, sample.value) : most), 0)
}

function isDrawn({ value }: Sample): boolean {
  return Number.isFinite(value)
}
