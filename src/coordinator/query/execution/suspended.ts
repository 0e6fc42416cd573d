import { QuipuError } from '../../../shared/quipu-error.ts'

/** The coordinator stops while the query runs: its tasks continue, and its successor takes them over. */
export class Suspended extends QuipuError {
  readonly retry = 'later'
}
