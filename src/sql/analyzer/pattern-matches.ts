import type { PatternProgram } from '../../duckdb/scripts/row-patterns.ts'
import type { PatternRecognitionRelation } from '../syntax/ast-patterns.ts'
import { array, BIGINT, BOOLEAN, INTEGER, VARCHAR, type SqlType } from '../types/sql-type.ts'
import { castTo, columnOf, constantOf } from './build.ts'
import { newId, type AnalysisContext } from './context.ts'
import { concatenated } from './pattern-expressions.ts'
import { arithmetic, compare, type BuiltRows } from './pattern-rows.ts'
import type { ColumnId, Expr, RelationNode } from './tree.ts'
import { mapChildren } from './walk.ts'

// Steps from the rows with masks to the rows of the matches:
//
//   rows ─► one row per partition: its masks ─► one row per match: start and letters ─┐
//   rows ─────────────────────────────────────────────────────────────────► join ─────┴► rows of matches: place, letter

export type RowsPerMatch = NonNullable<PatternRecognitionRelation['rowsPerMatch']>

/** Columns of the matches. Measures refer to them before the matches are built. */
export interface MatchColumns {
  readonly numberOfMatch: ColumnId
  /** Per match: the letters of the variables that its rows matched. */
  readonly letters: ColumnId
  /** Per row: its position in the match, from 1. */
  readonly rowNumber: ColumnId
}

export interface Matches {
  /** The rows of the matches; a match without rows keeps its row if it is shown. */
  readonly node: RelationNode
  /** The partition of a match. */
  readonly keys: readonly { readonly id: ColumnId; readonly input: ColumnId; readonly type: SqlType }[]
  /** The number of the row at which a match starts. */
  readonly start: ColumnId
  /** The number of a row in its partition. */
  readonly row: Expr
  /** The letter of the variable that a row matched. */
  readonly letter: Expr
  /** Converts an expression over the rows to one over the rows of the matches. */
  readonly of: (expr: Expr) => Expr
}

/** A second read of the rows, with columns of its own. */
interface Scan {
  readonly node: RelationNode
  readonly of: (expr: Expr) => Expr
}

export function matchesIn(
  context: AnalysisContext,
  rows: BuiltRows,
  program: PatternProgram,
  columns: MatchColumns,
  perMatch: RowsPerMatch,
): Matches {
  const sequence = scanOf(context, rows)
  const matched = scanOf(context, rows)
  const keys = rows.partition.map((expr) => {
    const { id } = sequence.of(expr) as Expr & { readonly id: ColumnId }
    return { id, input: id, type: expr.type }
  })
  const found = partitionMatches(context, rows, program, sequence, keys)
  const one = oneRowAMatch(context, found, columns)
  const row = matched.of(columnOf(rows.number, BIGINT))
  const first = columnOf(one.start, BIGINT)
  const length: Expr = {
    kind: 'engineCall',
    type: BIGINT,
    name: 'length',
    arguments: [columnOf(columns.letters, VARCHAR)],
  }
  // An empty match shows the row at which it begins.
  const shown: Expr = {
    kind: 'case',
    type: BIGINT,
    branches: [{ when: compare('=', length, constantOf(BIGINT, '0')), then: constantOf(BIGINT, '1') }],
    otherwise: length,
  }
  const showsEmpty = perMatch === 'ALL_SHOW_EMPTY' || perMatch === 'ALL_WITH_UNMATCHED'
  const unmatched = perMatch === 'ALL_WITH_UNMATCHED'
  const label = newId(context)
  const rowNumber = arithmetic('+', arithmetic('-', row, first), constantOf(BIGINT, '1'))
  const node: RelationNode = {
    kind: 'project',
    input: {
      kind: 'join',
      type: perMatch === 'ONE' || unmatched ? 'left' : 'inner',
      lateral: false,
      left: unmatched ? matched.node : one.node,
      right: unmatched ? one.node : matched.node,
      condition: {
        kind: 'and',
        type: BOOLEAN,
        terms: [
          ...rows.partition.map((expr) => compare('IS NOT DISTINCT FROM', sequence.of(expr), matched.of(expr))),
          compare('>=', row, first),
          compare('<', row, arithmetic('+', first, showsEmpty ? shown : length)),
        ],
      },
    },
    columns: [
      { id: columns.rowNumber, expression: rowNumber },
      { id: label, expression: letterAt(columns, rowNumber) },
    ],
  }
  return { node, keys, start: one.start, row, letter: columnOf(label, VARCHAR), of: matched.of }
}

/** The letter at a position of a match. */
export function letterAt({ letters }: MatchColumns, rowNumber: Expr): Expr {
  return {
    kind: 'engineCall',
    type: VARCHAR,
    name: 'substr',
    arguments: [columnOf(letters, VARCHAR), rowNumber, constantOf(INTEGER, '1')],
  }
}

function scanOf(context: AnalysisContext, { table }: BuiltRows): Scan {
  const columns = table.columns.map(({ id, type }) => ({ id: newId(context), source: id, type }))
  const byId = new Map(columns.map((column) => [column.source, column]))
  const of = (expr: Expr): Expr => {
    const column = expr.kind === 'column' ? byId.get(expr.id) : undefined
    return column === undefined ? mapChildren(expr, of) : columnOf(column.id, column.type)
  }
  return { node: { kind: 'cte', table: table.id, columns }, of }
}

interface PartitionMatches {
  readonly node: RelationNode
  /** A list of texts, one per match. */
  readonly matches: ColumnId
}

/** One row per partition: the masks of its rows in order, and the matches that the engine finds in them. */
function partitionMatches(
  context: AnalysisContext,
  rows: BuiltRows,
  program: PatternProgram,
  sequence: Scan,
  keys: Matches['keys'],
): PartitionMatches {
  const masks = newId(context)
  const values = newId(context)
  const matches = newId(context)
  const inOrder = (column: ColumnId) =>
    concatenated(sequence.of(columnOf(column, VARCHAR)), sequence.of(columnOf(rows.number, BIGINT)))
  const node: RelationNode = {
    kind: 'project',
    input: {
      kind: 'aggregate',
      input: sequence.node,
      keys,
      sets: undefined,
      aggregates: [
        { id: masks, call: inOrder(rows.mask) },
        ...(rows.texts === undefined ? [] : [{ id: values, call: inOrder(rows.texts) }]),
      ],
      groupings: [],
    },
    columns: [
      {
        id: matches,
        expression: {
          kind: 'engineCall',
          type: array(VARCHAR),
          name: 'u_match_rows',
          arguments: [
            columnOf(masks, VARCHAR),
            constantOf(VARCHAR, JSON.stringify(program)),
            rows.texts === undefined ? constantOf(VARCHAR, '') : columnOf(values, VARCHAR),
          ],
        },
      },
    ],
  }
  return { node, matches }
}

/** One row per match: its number, its start, and the letters of its rows. */
function oneRowAMatch(
  context: AnalysisContext,
  { node, matches }: PartitionMatches,
  { numberOfMatch, letters }: MatchColumns,
): { readonly node: RelationNode; readonly start: ColumnId } {
  const match = newId(context)
  const start = newId(context)
  const part = (index: string): Expr => ({
    kind: 'engineCall',
    type: VARCHAR,
    name: 'split_part',
    arguments: [columnOf(match, VARCHAR), constantOf(VARCHAR, ','), constantOf(INTEGER, index)],
  })
  const split: RelationNode = {
    kind: 'project',
    input: {
      kind: 'join',
      type: 'cross',
      lateral: true,
      left: node,
      right: {
        kind: 'unnest',
        arguments: [{ value: columnOf(matches, array(VARCHAR)), columns: [match] }],
        ordinality: numberOfMatch,
      },
      condition: undefined,
    },
    columns: [
      { id: start, expression: castTo(part('1'), BIGINT) },
      { id: letters, expression: part('2') },
    ],
  }
  return { node: split, start }
}
