/**
 * What may be done about an error, said where it is thrown:
 * `never`  the same fails again, or must not be done twice;
 * `later`  what it needs is away and comes back: the same may be asked for again, of the same or of who follows;
 * `anew`   who did it is lost, or was overtaken, and nothing of it is used: it may be begun again from its start.
 */
export type Retry = 'never' | 'later' | 'anew'

/**
 * The one family of errors: what is thrown on purpose. Anything else that is thrown is a library's, or a bug.
 *
 *     QuipuError            retry
 *     ├─ EngineError        what a query is told: errorName, errorType, location
 *     ├─ HttpProblem        a request's answer: status, headers
 *     ├─ ExitError          the end of a process: exitCode
 *     ├─ EventLogError      kind: Fenced, SequenceConflict, NotTaken, LogUnavailable, LogChanged …
 *     ├─ WorkerError        kind: WorkerLost, WorkerRefused, StaleEpoch
 *     ├─ EngineLost, PageGone, Suspended …
 *     └─ Signal             for one who catches it nearby: Mismatch, EmptyResult, Ended …
 *
 * Nobody reads a name or a message to decide: `test/errors.test.ts` keeps it so. What libraries throw is read in one file a
 * library: `shared/node-error.ts`, `events/postgres/database-error.ts`, `events/kafka/kafka-error.ts`.
 */
export abstract class QuipuError extends Error {
  abstract readonly retry: Retry

  /** Its class's, so that two classes never share one. */
  override get name(): string {
    return this.constructor.name
  }
}

/** Leaves a computation for a caller a few frames up, which catches it. A signal that reaches any other caller is a bug. */
export abstract class Signal extends QuipuError {
  readonly retry = 'never'
}

/** Says whether a caller may retry after this error. An error outside of the family is a bug: a caller never retries it. */
export function howToRetry(error: unknown): Retry {
  return error instanceof QuipuError ? error.retry : 'never'
}
