/** For the branch of a closed switch that cannot be reached: a missing case is then a compile error. */
export function unreachable(value: never): never {
  throw new Error(`Unexpected value: ${JSON.stringify(value)}`)
}
