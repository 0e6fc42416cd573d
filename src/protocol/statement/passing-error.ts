import { howToRetry } from '../../shared/quipu-error.ts'

/**
 * Whether an error passes: the log or a worker is unreachable, another coordinator writes, or this process drains. Then
 * the log or worker returns, or recovery or the next coordinator decides about the query. A bug does not pass.
 */
export function isPassing(error: unknown): boolean {
  return howToRetry(error) !== 'never'
}
