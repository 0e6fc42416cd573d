import { howToRetry } from '../../shared/quipu-error.ts'

/**
 * The log or a worker is away, or another coordinator writes: it comes back, or recovery says what became of the query. Or
 * this process drains: the next coordinator says it. A bug does not pass.
 */
export function isPassing(error: unknown): boolean {
  return howToRetry(error) !== 'never'
}
