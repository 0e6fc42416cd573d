import { EXCLUDED, type PatternProgram } from '../../duckdb/scripts/row-patterns.ts'
import type { PatternRecognitionRelation } from '../syntax/ast-patterns.ts'
import { BIGINT, BOOLEAN, type SqlType } from '../types/sql-type.ts'
import { columnOf, constantOf } from './build.ts'
import { errorAt, newId, type AnalysisContext } from './context.ts'
import { PatternConditions, type Condition, type ConditionColumn } from './pattern-conditions.ts'
import { isOneOf, letterOf } from './pattern-expressions.ts'
import { labelsOf, matcherPatternOf, skipOf, verifyPattern } from './pattern-labels.ts'
import { matchesIn, type MatchColumns, type Matches } from './pattern-matches.ts'
import { PatternMeasures, type CalculatedMeasures } from './pattern-measures.ts'
import { PatternRows, type Recognition, type TypedRelation } from './pattern-rows.ts'
import type { Field, Scope } from './scope.ts'
import type { Expr, RelationNode } from './tree.ts'

/**
 * Analyzes MATCH_RECOGNIZE. Every row of a partition gets a mask of the variables whose conditions it meets. A function
 * of the engine finds the matches in the sequence of masks. The measures are aggregates over the rows of a match, or
 * windows over them if all rows are returned. Conditions that look at earlier matched rows are evaluated while
 * matching.
 *
 *   PATTERN  ─► labels, program                          pattern-labels, pattern-checks
 *   DEFINE   ─► conditions: of a row, or of a match      pattern-conditions
 *   input    ─► rows with number and mask                pattern-rows
 *            ─► rows of the matches                      pattern-matches
 *   MEASURES ─► aggregates or windows over these         pattern-measures
 */
export function analyzeRowPattern(
  context: AnalysisContext,
  node: PatternRecognitionRelation,
  input: TypedRelation,
  scope: Scope,
): TypedRelation {
  verifyPattern(context, node)
  const labels = labelsOf(context, node)
  const rows = new PatternRows(context, node, input, scope)
  const recognition: Recognition = { context, labels, input, scope, rows }
  const columns: ConditionColumn[] = []
  const conditions = node.variableDefinitions.map((definition) => {
    const own = labels.primary.get(labels.nameOf(definition.name))!
    return { own, ...new PatternConditions(recognition, own, columns).analyze(definition) }
  })
  const measures = new PatternMeasures(recognition)
  const measured = node.measures.map(({ expression, name }) => ({
    id: newId(context),
    name: name.value,
    expr: measures.analyze(expression),
  }))
  const built = rows.build(
    labels,
    conditions.map((condition) => (condition.of === 'row' ? condition.expr : undefined)),
    columns.map(({ value }) => value),
  )
  const perMatch = node.rowsPerMatch ?? 'ONE'
  const program = programOf(recognition, node, conditions, columns)
  const matches = matchesIn(context, built, program, measures.columns, perMatch)
  const calculated = measures.over(measured, built, matches, perMatch !== 'ONE')
  const { node: body, fields } =
    perMatch === 'ONE'
      ? oneRowPerMatch(recognition, matches, measures.columns, calculated)
      : allRowsPerMatch(recognition, matches, measures.columns, calculated)
  if (fields.length === 0) {
    throw errorAt(context, node, 'TABLE_HAS_NO_COLUMNS', 'pattern recognition output table has no columns')
  }
  return { node: { kind: 'with', tables: [built.table], body }, fields }
}

/** The program for the engine's matcher: the pattern, and the conditions that the matcher evaluates itself. */
function programOf(
  { context, labels }: Recognition,
  node: PatternRecognitionRelation,
  conditions: readonly (Condition & { readonly own: number })[],
  columns: readonly ConditionColumn[],
): PatternProgram {
  const pattern = { pattern: matcherPatternOf(context, labels, node.pattern), skip: skipOf(labels, node) }
  if (conditions.every((condition) => condition.of === 'row') && columns.length === 0) return pattern
  return {
    ...pattern,
    conditions: Object.fromEntries(
      conditions.flatMap((each) => (each.of === 'match' ? [[String(each.own), each.code]] : [])),
    ),
    columns: columns.map(({ kind }) => kind),
    names: [...labels.primary.keys()],
  }
}

/** The output of ONE ROW PER MATCH: the partition of each match and its measures. */
function oneRowPerMatch(
  { rows }: Recognition,
  { node: input, keys, start }: Matches,
  { numberOfMatch }: MatchColumns,
  { columns, aggregates }: CalculatedMeasures,
): TypedRelation {
  const groupKeys = [
    ...keys,
    { id: numberOfMatch, input: numberOfMatch, type: BIGINT as SqlType },
    { id: start, input: start, type: BIGINT as SqlType },
  ]
  return {
    node: {
      kind: 'project',
      input: { kind: 'aggregate', input, keys: groupKeys, sets: undefined, aggregates, groupings: [] },
      columns,
    },
    fields: [
      ...keys.map(({ id, type }, i) => ({ name: rows.partitionNames[i], relation: undefined, type, column: id })),
      ...measureFields(columns),
    ],
  }
}

/** The output of ALL ROWS PER MATCH: partition and order, the measures, and the other columns of the input. */
function allRowsPerMatch(
  { labels, rows, input }: Recognition,
  matches: Matches,
  { numberOfMatch }: MatchColumns,
  { columns, windows }: CalculatedMeasures,
): TypedRelation {
  const measured: RelationNode =
    windows.length === 0 ? matches.node : { kind: 'window', input: matches.node, columns: windows }
  const excluded = isOneOf(
    matches.letter,
    [...labels.primary.values()].map((variable) => letterOf(variable + EXCLUDED)),
  )
  const isExcluded: Expr = { kind: 'coalesce', type: BOOLEAN, operands: [excluded, constantOf(BOOLEAN, false)] }
  const isUnmatched: Expr = { kind: 'isNull', type: BOOLEAN, value: columnOf(numberOfMatch, BIGINT) }
  // A column that is named several times is shown as often.
  const leading = [...rows.partitionBy, ...rows.orderBy.map(({ value }) => value)].flatMap((expr) =>
    expr.kind === 'column' ? [expr.id] : [],
  )
  const field = ({ name, column, type, shows }: Field): Field => {
    const moved = matches.of(columnOf(column, type)) as Expr & { readonly id: number }
    return { name, relation: undefined, type, column: moved.id, shows: shows ?? column }
  }
  const byColumn = new Map(input.fields.map((each) => [each.column, each]))
  return {
    node: {
      kind: 'project',
      input: { kind: 'filter', input: measured, predicate: { kind: 'not', type: BOOLEAN, value: isExcluded } },
      columns: columns.map(({ id, expression }) => ({
        id,
        expression: {
          kind: 'case',
          type: expression.type,
          branches: [{ when: isUnmatched, then: constantOf(expression.type, null) }],
          otherwise: expression,
        } satisfies Expr,
      })),
    },
    fields: [
      ...leading.flatMap((column) => byColumn.get(column) ?? []).map(field),
      ...measureFields(columns),
      ...input.fields.filter(({ column }) => !leading.includes(column)).map(field),
    ],
  }
}

function measureFields(columns: CalculatedMeasures['columns']): readonly Field[] {
  return columns.map(({ id, name, expression }) => ({ name, relation: undefined, type: expression.type, column: id }))
}
