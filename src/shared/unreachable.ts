/** For the branch of a closed switch that cannot be reached: stops compiling when a case is missed. */
export function unreachable(value: never): never {
  throw new Error(`Unexpected value: ${JSON.stringify(value)}`)
}
