import { EngineError, type ErrorLocation, type ErrorName } from '../../shared/engine-error.ts'
import type { MetadataPort } from '../front-end.ts'
import type { SessionContext } from '../session.ts'
import { locationOf, type Span } from '../syntax/span.ts'

/** What a statement other than a query is worked out from. */
export interface StatementInput {
  /** The text it was parsed from, and where that begins inside what the client sent. */
  readonly sql: string
  readonly origin: ErrorLocation
  readonly session: SessionContext
  readonly metadata: MetadataPort
}

/** An error at the place of a node. */
export function errorAt(
  input: Pick<StatementInput, 'sql' | 'origin'>,
  node: { readonly span: Span },
  name: ErrorName,
  message: string,
): EngineError {
  return new EngineError(name, message, { location: locationOf(input.sql, node, input.origin) })
}
