import type { Expression } from '../syntax/ast.ts'
import type { Query, Relation, SelectItem, SortItem } from '../syntax/ast-query.ts'
import type { Span } from '../syntax/span.ts'

/** Builds a generated query from a body and an optional ORDER BY. Errors are reported at `span`. */
export function plainQuery(span: Span, body: Query['body'], ...sortItems: readonly SortItem[]): Query {
  return {
    kind: 'Query',
    span,
    functions: [],
    sessionProperties: [],
    with: undefined,
    body,
    orderBy: sortItems.length === 0 ? undefined : { kind: 'OrderBy', span, sortItems },
    offset: undefined,
    limit: undefined,
  }
}

/** Builds `SELECT items [FROM from] [WHERE where]`. */
export function plainSelect(
  span: Span,
  items: readonly SelectItem[],
  { from, where }: { readonly from?: Relation; readonly where?: Expression | undefined } = {},
): Query['body'] {
  return {
    kind: 'QuerySpecification',
    span,
    select: { kind: 'Select', span, distinct: false, items },
    from,
    where,
    groupBy: undefined,
    having: undefined,
    windows: [],
  }
}

/** Builds `SELECT * FROM relation`. */
export function allOf(relation: Relation): Query {
  const { span } = relation
  const all = { kind: 'AllColumns', span, target: undefined, aliases: [] } as const
  return plainQuery(span, plainSelect(span, [all], { from: relation }))
}
