import type { CpuBudget } from '../shared/cpu-budget.ts'
import type { MetadataPort } from './front-end.ts'
import type { SessionContext } from './session.ts'
import type { SourceText } from './syntax/span.ts'

/** The inputs besides its syntax from which a statement is analyzed; for a query, the metadata is resolved. */
export interface StatementInput<Metadata = MetadataPort> {
  readonly session: SessionContext
  readonly metadata: Metadata
  /** The text from which it was parsed. */
  readonly text: SourceText
  /** The CPU budget for the whole analysis of the statement. */
  readonly budget: CpuBudget
  /** Set if nothing will run: errors of Trino's planner, which runs after its analysis, are then not reported. */
  readonly unplanned?: true
  /** The view, `catalog.schema.view`, that the statement defines or, if `refreshed`, runs the query of. */
  readonly defined?: { readonly label: string; readonly refreshed: boolean }
}
