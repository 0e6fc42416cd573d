/** The sum of numbers; undefined if any of them is unknown. */
export function knownSum(values: readonly (number | undefined)[]): number | undefined {
  return values.reduce<number | undefined>(
    (total, value) => (total === undefined || value === undefined ? undefined : total + value),
    0,
  )
}
