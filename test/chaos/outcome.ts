import type { StatementName } from './statements.ts'

/** How a client treats a statement. */
export const behaviours = [
  'follow',
  'repeat',
  'slow',
  'cut',
  'cancel',
  'cancel beside',
  'abandon post',
  'walk away',
  'pause',
] as const
export type Behaviour = (typeof behaviours)[number]

/** The outcome of one statement, as its client saw it. */
export interface Outcome {
  readonly name: StatementName
  readonly client: string
  readonly behaviour: Behaviour
  readonly id?: string
  /** `right`: as expected; `clean`: an error names the loss; `left`: the client left; `wrong`: the server is wrong. */
  readonly result: 'right' | 'clean' | 'left' | 'wrong'
  readonly why?: string
  /** Milliseconds since the clients began. */
  readonly fromMs: number
  readonly toMs: number
}

/** Errors that correctly report the loss of a process, a page or a disk. */
export const cleanErrors: ReadonlySet<string> = new Set([
  'COORDINATOR_RESTARTED',
  'REMOTE_TASK_FAILED',
  'REMOTE_HOST_GONE',
  'REMOTE_TASK_ERROR',
  'PAGE_TRANSPORT_ERROR',
  'PAGE_TRANSPORT_TIMEOUT',
  'NO_NODES_AVAILABLE',
  'ABANDONED_QUERY',
  'OUT_OF_SPILL_SPACE',
  'SERVER_SHUTTING_DOWN',
])
