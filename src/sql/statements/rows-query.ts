import type { Expression } from '../syntax/ast.ts'
import type { Identifier } from '../syntax/ast-node.ts'
import type { DataType } from '../syntax/ast-types.ts'
import type { AliasedRelation, Query, SelectItem, Values } from '../syntax/ast-query.ts'
import type { Span } from '../syntax/span.ts'
import { plainQuery, plainSelect } from './plain-query.ts'

/** A value of a generated row. */
export type RowValue = string | number | boolean | null

/** The type to which a generated column is cast. */
export interface GeneratedType {
  readonly name: 'bigint' | 'boolean' | 'double' | 'varchar'
  /** The length of a varchar. */
  readonly length?: number
}

interface GeneratedColumn {
  readonly name: string
  /** Without a type, the column has the type of its values as literals. */
  readonly type?: GeneratedType
}

export interface RowsQuery {
  readonly columns: readonly GeneratedColumn[]
  readonly rows: readonly (readonly RowValue[])[]
  /** A LIKE condition on the first column. */
  readonly like?: { readonly pattern: string; readonly escape: string | undefined } | undefined
}

/**
 * Turns generated rows into a query, so that they are handled like any other result. It is built as a syntax tree, not
 * as text, so that no value in a row can be read as SQL. The rows keep their order. Errors are reported at `span`.
 */
export function rowsQuery({ columns, rows, like }: RowsQuery, span: Span): Query {
  const make = makerAt(span)
  const order = make.name('$order')
  const names = columns.map(({ name }) => make.name(name))
  const items = columns.map(({ type }, i): SelectItem => {
    const name = names[i]!
    const expression: Expression =
      type === undefined ? name : { kind: 'Cast', span, expression: name, type: make.type(type), safe: false }
    return { kind: 'SingleColumn', span, expression, alias: type === undefined ? undefined : name }
  })
  const values: Values = {
    kind: 'Values',
    span,
    rows: (rows.length === 0 ? [columns.map(() => null)] : rows).map((row, index) => ({
      kind: 'Row',
      span,
      items: [...row, index].map((value) => make.literal(value)),
    })),
  }
  const from: AliasedRelation = {
    kind: 'AliasedRelation',
    span,
    relation: { kind: 'TableSubquery', span, query: plainQuery(span, values) },
    alias: make.name('generated'),
    columnNames: [...names, order],
  }
  const conditions: Expression[] = [
    ...(rows.length === 0 ? [make.literal(false)] : []),
    ...(like === undefined ? [] : [make.like(names[0]!, like)]),
  ]
  const where: Expression | undefined =
    conditions.length > 1 ? { kind: 'LogicalExpression', span, operator: 'AND', terms: conditions } : conditions[0]
  return plainQuery(span, plainSelect(span, items, { from, where }), {
    kind: 'SortItem',
    span,
    sortKey: order,
    ordering: 'ASCENDING',
    nullOrdering: 'UNDEFINED',
  })
}

function makerAt(span: Span) {
  const name = (value: string): Identifier => ({ kind: 'Identifier', span, value, quoted: true })
  const literal = (value: RowValue): Expression => {
    if (value === null) return { kind: 'NullLiteral', span }
    switch (typeof value) {
      case 'boolean':
        return { kind: 'BooleanLiteral', span, value }
      case 'string':
        return { kind: 'StringLiteral', span, value }
      case 'number':
        return Number.isSafeInteger(value)
          ? { kind: 'LongLiteral', span, value: String(value), text: String(value) }
          : { kind: 'DoubleLiteral', span, value: value.toExponential() }
    }
  }
  return {
    name,
    literal,
    type: ({ name: base, length }: GeneratedType): DataType => ({
      kind: 'GenericDataType',
      span,
      name: name(base),
      arguments: length === undefined ? [] : [{ kind: 'NumericParameter', span, value: String(length) }],
    }),
    like: (value: Expression, { pattern, escape }: NonNullable<RowsQuery['like']>): Expression => ({
      kind: 'LikePredicate',
      span,
      value,
      pattern: literal(pattern),
      escape: escape === undefined ? undefined : literal(escape),
    }),
  }
}
