/** The coordinator stops while the query runs: its tasks go on, its successor takes them over. */
export class Suspended extends Error {
  override readonly name = 'Suspended'
}
