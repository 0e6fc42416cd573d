/**
 * The messages between supervisor and child over Node's IPC. Both run the same build, so the messages carry no version.
 * This file has types only: the child imports it without loading any code.
 */
import type { EngineIds } from './engine-ids.ts'

export type ToChild =
  /** The first message. The child does nothing before it. */
  | { readonly type: 'start'; readonly start: ChildStart }
  /**
   * Carries the bound socket as its handle; sent several times, `left` more follow. Only for the child that accepts on
   * it.
   */
  | { readonly type: 'socket'; readonly left: number }
  /** The Postgres to use, once it answers. Sent again after a restart, with the same address. */
  | { readonly type: 'database'; readonly url: string }
  /** Sent when the counts change. */
  | { readonly type: 'restarts'; readonly restarts: readonly RestartCount[] }
  /** A message from an engine that the launcher runs for this child. */
  | { readonly type: 'engine'; readonly engineMessage: EngineMessage }

export type FromChild =
  /** Sent from the event loop about every second. Silence means that the event loop does not run. */
  | { readonly type: 'beat' }
  /** The child is ready for its work. */
  | { readonly type: 'ready' }
  /** The child became the writer of the event log under this name. */
  | { readonly type: 'writer'; readonly writer: string }
  /** The child serves this identity by TLS from now on. */
  | { readonly type: 'identity'; readonly served: ServedIdentity }
  /** This text of a file with users or their rights is in force from now on. */
  | { readonly type: 'file'; readonly file: string; readonly text: string }
  /** The child was asked to end. However it ends, the supervisor does not start it again. */
  | { readonly type: 'last' }
  /** Why the child is about to exit, in one line for the operator. */
  | { readonly type: 'exit'; readonly line: string }
  /** A request to the launcher of engines. */
  | { readonly type: 'engine'; readonly ask: AskEngine }

/** A child's request to the launcher. `run` distinguishes the engines of one slot; the child chooses it. */
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
  /** Ends all engines of a process. */
  | { readonly do: 'end'; readonly process: number }

/** A request to the launcher, one line of JSON. `life` says which launcher it is for; any other launcher ignores it. */
export type LauncherRequest = ToLauncher & { readonly life: number }

export type EngineMessage =
  | { readonly type: 'started'; readonly slot: number; readonly run: number; readonly pid: number }
  /** The engine is gone, with all processes of its user. `words`: the last text that it wrote on its standard error. */
  | { readonly type: 'ended'; readonly slot: number; readonly run: number; readonly words: string }

export type FromLauncher =
  | ((EngineMessage | { readonly type: 'all ended' }) & { readonly process: number })
  /** The previous launcher died and none of its engines runs. This launcher takes only requests of its own life. */
  | { readonly type: 'launcher'; readonly life: number }

/** The launcher's configuration, made by root. */
export interface LauncherPlan {
  readonly ids: EngineIds
  /** Folders of each process's slots: absolute paths without a trailing slash. */
  readonly folders: readonly string[]
  /** How many processes and threads may run as one engine's user. */
  readonly tasks: number
  /** File URL of the engine's program. */
  readonly program: string
  /** File URL of the module that the engine loads. */
  readonly functionsModule: string
}

/**
 * Texts (PEM) of a server's certificate and key, and of the authority for its clients. Kept in memory only, never on a
 * disk.
 */
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
   * The last writer, if the predecessor of this child was that writer, this supervisor saw it exit (or found it dead),
   * and it was not fenced. The child may claim at once if that writer is still the last one in the log.
   */
  readonly deadWriter: string | undefined
  /**
   * Whether the child may follow another writer: the operator allowed it, or the child is a successor. Otherwise a log
   * with another writer is a mistake in the configuration.
   */
  readonly follow: boolean
  /** Whether an earlier process of this child was ready: dependencies that are missing now will come back. */
  readonly successor: boolean
  readonly restarts: readonly RestartCount[]
  /** The TLS identity that the previous process served last. */
  readonly identity: ServedIdentity | undefined
  /** Texts of files that the previous process had in force last, by purpose. Kept in memory only. */
  readonly files?: Readonly<Record<string, string>>
  /** Present if the launcher starts engines: the users of this process's slots. */
  readonly engines?: ChildEngines
}

/** Slot n's engine runs as user, and group, `firstUser` + n. */
export interface ChildEngines {
  readonly firstUser: number
  readonly slots: number
}

/** How often processes were restarted, and why; for `process_restarts_total`. */
export interface RestartCount {
  readonly process: string
  /** `hang`: the supervisor killed the process because it was silent. */
  readonly reason: 'exit' | 'hang'
  readonly count: number
}

/** Exit codes that the supervisor acts on; the same numbers as in `shared/exit-codes.ts`, which it may not import. */
export const EXIT_DRAINED = 0
export const EXIT_CONFIGURATION = 64
export const EXIT_DEPENDENCY = 69
export const EXIT_FENCED = 75
