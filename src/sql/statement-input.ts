import type { CpuBudget } from '../shared/cpu-budget.ts'
import type { MetadataPort } from './front-end.ts'
import type { SessionContext } from './session.ts'
import type { SourceText } from './syntax/span.ts'

/** What a statement's meaning is worked out from besides its syntax: of a query, with metadata that are resolved. */
export interface StatementInput<Metadata = MetadataPort> {
  readonly session: SessionContext
  readonly metadata: Metadata
  /** The text it was parsed from. */
  readonly text: SourceText
  /** What all that is worked out for the statement may take together. */
  readonly budget: CpuBudget
  /** Nothing of it is to be run: what Trino's planner refuses, which is after its analysis, is not refused. */
  readonly unplanned?: true
}
