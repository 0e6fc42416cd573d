/**
 * How a caller may retry after an error. The code that throws the error says it.
 * `never`  the same fails again, or must not be done twice;
 * `later`  a dependency is away and comes back: the caller may ask for the same again, also from a successor;
 * `anew`   the process that did the work is lost or was replaced, and its work is not used: begin again from the start.
 */
export type Retry = 'never' | 'later' | 'anew'

/**
 * The one family of errors that Quipu throws on purpose. Any other error comes from a library or is a bug.
 *
 *     QuipuError            retry
 *     ├─ EngineError        an error for the client of a query: errorName, errorType, location
 *     ├─ HttpProblem        the answer to a request: status, headers
 *     ├─ ExitError          the end of a process: exitCode
 *     ├─ EventLogError      kind: Fenced, SequenceConflict, NotTaken, LogUnavailable, LogChanged …
 *     ├─ WorkerError        kind: WorkerLost, WorkerRefused, StaleEpoch
 *     ├─ EngineLost, PageGone, Suspended …
 *     └─ Signal             for a caller that catches it nearby: Mismatch, EmptyResult, Ended …
 *
 * No code reads a name or a message to decide: `test/errors.test.ts` enforces it. Each library's errors are read in one
 * file: `shared/node-error.ts`, `events/postgres/database-error.ts`, `events/kafka/kafka-error.ts`.
 */
export abstract class QuipuError extends Error {
  abstract readonly retry: Retry

  /** The name of the class, so that two classes never share a name. */
  override get name(): string {
    return this.constructor.name
  }
}

/**
 * Leaves a computation for a caller a few frames up, which catches it. A signal that reaches any other caller is a bug.
 */
export abstract class Signal extends QuipuError {
  readonly retry = 'never'
}

/** How a caller may retry after this error. An error outside of the family is a bug: a caller never retries it. */
export function howToRetry(error: unknown): Retry {
  return error instanceof QuipuError ? error.retry : 'never'
}
