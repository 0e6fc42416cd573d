/**
 * What supervisor and child say to each other over Node's IPC. Both run the same build, so the messages carry no
 * version. Types only: the child's side imports them without loading anything.
 */
export type ToChild =
  /** First of all, before the child does anything. */
  | { readonly type: 'start'; readonly start: ChildStart }
  /** Comes with the bound socket as its handle; only to the child that is to accept on it. */
  | { readonly type: 'socket' }
  /** The Postgres to use, once it answers; again when it was started anew (same address). */
  | { readonly type: 'database'; readonly url: string }
  /** The counts changed. */
  | { readonly type: 'restarts'; readonly restarts: readonly RestartCount[] }

export type FromChild =
  /** Sent from the event loop about every second: silence means that nothing else runs either. */
  | { readonly type: 'beat' }
  /** Does what it is there for. */
  | { readonly type: 'ready' }
  /** It became the writer of the event log under this name. */
  | { readonly type: 'writer'; readonly writer: string }
  /** Why it is about to exit, in one line for the operator. */
  | { readonly type: 'exit'; readonly line: string }

export interface ChildStart {
  /** The process's configuration, as the supervisor's caller made it. */
  readonly config: unknown
  /** Address of the socket that the supervisor holds, when there is one. */
  readonly url: string | undefined
  /**
   * The writer that the predecessor of this child was, when this supervisor saw it exit (or found it dead) and it was
   * not fenced: the child may claim at once if that writer is still the last one in the log.
   */
  readonly deadWriter: string | undefined
  /**
   * It may follow another writer: told so by the operator, or a successor. Else a log that another one writes is a mistake
   * of whoever started this.
   */
  readonly follow: boolean
  /** One before it was ready: what is missing now will come back. */
  readonly successor: boolean
  readonly restarts: readonly RestartCount[]
}

/** How often processes were started again and why; for `process_restarts_total`. */
export interface RestartCount {
  readonly process: string
  /** `hang`: killed for its silence. */
  readonly reason: 'exit' | 'hang'
  readonly count: number
}

/** Exit codes that the supervisor acts on; the same numbers as in `shared/exit-codes.ts`, which it may not import. */
export const EXIT_DRAINED = 0
export const EXIT_CONFIGURATION = 64
export const EXIT_DEPENDENCY = 69
export const EXIT_FENCED = 75
