/**
 * What supervisor and child say to each other over Node's IPC. Both run the same build, so the messages carry no
 * version. Types only: the child's side imports them without loading anything.
 */
import type { EngineIds } from './engine-ids.ts'

export type ToChild =
  /** First of all, before the child does anything. */
  | { readonly type: 'start'; readonly start: ChildStart }
  /** Comes with the bound socket as its handle, again and again, `left` to come; only to the child that is to accept on it. */
  | { readonly type: 'socket'; readonly left: number }
  /** The Postgres to use, once it answers; again when it was started anew (same address). */
  | { readonly type: 'database'; readonly url: string }
  /** The counts changed. */
  | { readonly type: 'restarts'; readonly restarts: readonly RestartCount[] }
  /** Of an engine that the launcher runs for this child. */
  | { readonly type: 'engine'; readonly engineMessage: EngineMessage }

export type FromChild =
  /** Sent from the event loop about every second: silence means that nothing else runs either. */
  | { readonly type: 'beat' }
  /** Does what it is there for. */
  | { readonly type: 'ready' }
  /** It became the writer of the event log under this name. */
  | { readonly type: 'writer'; readonly writer: string }
  /** It serves this by TLS from now on. */
  | { readonly type: 'identity'; readonly served: ServedIdentity }
  /** This text of a file that says who may come in and do what is in force from now on. */
  | { readonly type: 'file'; readonly file: string; readonly text: string }
  /** It was asked to end: however it does, it is not to be started again. */
  | { readonly type: 'last' }
  /** Why it is about to exit, in one line for the operator. */
  | { readonly type: 'exit'; readonly line: string }
  /** For the launcher of engines. */
  | { readonly type: 'engine'; readonly ask: AskEngine }

/** What a child asks of the launcher. `run` tells engines of one slot apart; its child makes it up. */
export type AskEngine =
  | {
      readonly do: 'start'
      readonly slot: number
      readonly run: number
      /** Hard limit on data memory, in kilobytes. */
      readonly dataKilobytes: number
      readonly beatMs: number
    }
  | { readonly do: 'kill'; readonly slot: number; readonly run: number }

export type ToLauncher =
  | (AskEngine & { readonly process: number })
  /** All engines of a process. */
  | { readonly do: 'end'; readonly process: number }

/** What goes to the launcher, a line of JSON each. `life`: which launcher it is for; another one leaves it alone. */
export type LauncherRequest = ToLauncher & { readonly life: number }

export type EngineMessage =
  | { readonly type: 'started'; readonly slot: number; readonly run: number; readonly pid: number }
  /** It is gone, with all that ran as its user. `words`: the last that it wrote on its standard error. */
  | { readonly type: 'ended'; readonly slot: number; readonly run: number; readonly words: string }

export type FromLauncher =
  | ((EngineMessage | { readonly type: 'all ended' }) & { readonly process: number })
  /** The launcher before it died: none of its engines runs any more, and this one takes requests of its own life alone. */
  | { readonly type: 'launcher'; readonly life: number }

/** What the launcher knows; made by root. */
export interface LauncherPlan {
  readonly ids: EngineIds
  /** Where the slots of each process lie, absolute, without trailing slash. */
  readonly folders: readonly string[]
  /** Processes and threads that may run as one engine's user. */
  readonly tasks: number
  /** File URL of the engine's program. */
  readonly program: string
  /** File URL of the module that the engine loads. */
  readonly functionsModule: string
}

/** Texts (PEM) of a server's certificate and key, and of who vouches for its clients. In memory alone, never on a disk. */
export interface ServedIdentity {
  readonly cert: string
  readonly key: string
  readonly clientCa: string | undefined
}

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
  /** What the process before this one served by TLS last. */
  readonly identity: ServedIdentity | undefined
  /** Texts of files that the process before this one had in force last, by what they are for. In memory alone. */
  readonly files?: Readonly<Record<string, string>>
  /** Where the launcher starts engines: users of this process's slots. */
  readonly engines?: ChildEngines
}

/** Slot n's engine runs as user, and group, `firstUser` + n. */
export interface ChildEngines {
  readonly firstUser: number
  readonly slots: number
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
