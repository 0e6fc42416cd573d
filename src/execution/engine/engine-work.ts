import type { FileQuestion } from '../../connectors/spi/table-source.ts'
import type { EngineBounds, EngineLost, EngineOutput, EngineResult, EngineUsage } from './engine.ts'
import type { EngineQuery } from './engine-query.ts'

/** The work of one engine for a statement or a question. */
export interface EngineWork {
  readonly id: string
  readonly asks:
    | {
        readonly kind: 'rows'
        readonly query: EngineQuery
        readonly output: EngineOutput
        readonly cachePrepared: boolean
        readonly profile: boolean
      }
    | { readonly kind: 'files'; readonly question: FileQuestion }
  /**
   * Limit of the CPU time, and of the time, for planning: when planning has used both, the engine is killed. On a busy
   * machine planning may have had little CPU.
   */
  readonly prepareDeadlineMs: number
  readonly bounds?: EngineBounds
  readonly onUsage?: (usage: EngineUsage) => void
}

/** How an attempt ended. */
export type Outcome =
  | { readonly kind: 'result'; readonly result: EngineResult; readonly body: Buffer }
  | {
      readonly kind: 'error'
      /** DuckDB's text of the error. */
      readonly text: string
      /** Whether the engine can run no statement any more. */
      readonly broken: boolean
      /** Whether the engine refused the statement, so that it never reached DuckDB. */
      readonly refused: boolean
      /** Whether no other statement ran in the engine meanwhile. */
      readonly alone: boolean
      readonly delivered: boolean
    }
  /** The reader or the consumer failed, so the rows could not be taken. */
  | { readonly kind: 'refused'; readonly error: unknown }
  | { readonly kind: 'canceled' }
  | {
      readonly kind: 'lost'
      readonly reason: EngineLost['reason']
      /** Whether no other statement ran when the engine died. */
      readonly alone: boolean
      /** Whether this statement is the reason why the engine was killed. */
      readonly culprit: boolean
      readonly delivered: boolean
    }

export interface EngineAttempt {
  /** Never rejects; settles when the engine no longer works on the statement. */
  readonly outcome: Promise<Outcome>
  /** Interrupts the statement, and kills the engine if it does not react in time. */
  cancel(): void
}
