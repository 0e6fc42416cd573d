import type { FileQuestion } from '../../connectors/spi/table-source.ts'
import type { EngineBounds, EngineLost, EngineOutput, EngineResult, EngineUsage } from './engine.ts'
import type { EngineQuery } from './engine-query.ts'

/** A statement as one engine runs it. */
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
  /** Of CPU, and of time: when planning has had both the engine is killed. On a busy machine it may have had little CPU. */
  readonly prepareDeadlineMs: number
  readonly bounds?: EngineBounds
  readonly onUsage?: (usage: EngineUsage) => void
}

/** How an attempt ended. */
export type Outcome =
  | { readonly kind: 'result'; readonly result: EngineResult; readonly body: Buffer }
  | {
      readonly kind: 'error'
      /** DuckDB's. */
      readonly text: string
      /** No statement works in this engine any more. */
      readonly broken: boolean
      /** It never reached DuckDB: the engine takes no such statement. */
      readonly refused: boolean
      /** No other statement ran in the engine meanwhile. */
      readonly alone: boolean
      readonly delivered: boolean
    }
  /** The rows could not be taken: the reader's or the consumer's own error. */
  | { readonly kind: 'refused'; readonly error: unknown }
  | { readonly kind: 'canceled' }
  | {
      readonly kind: 'lost'
      readonly reason: EngineLost['reason']
      /** Nothing else ran when the engine died. */
      readonly alone: boolean
      /** This statement is why the engine was killed. */
      readonly culprit: boolean
      readonly delivered: boolean
    }

export interface EngineAttempt {
  /** Never rejects; settles when the engine no longer works on the statement. */
  readonly outcome: Promise<Outcome>
  /** Interrupts, and kills the engine when that does not bite in time. */
  cancel(): void
}
