import { changeColumns } from '../../connectors/spi/table-writer.ts'
import type { ErrorName } from '../../shared/error-table.ts'
import { shownName } from '../access-control.ts'
import type { Expression } from '../syntax/ast.ts'
import type { Identifier, QualifiedName } from '../syntax/ast-node.ts'
import type { Delete, Merge, MergeCase, TableExecute, Update } from '../syntax/ast-statements.ts'
import { canInsertAll } from '../types/coercion.ts'
import { BIGINT, BOOLEAN, INTEGER, type SqlType } from '../types/sql-type.ts'
import { parseTypeText } from '../types/type-names.ts'
import { typeNames } from '../types/type-text.ts'
import { columnOf, comparison, constantOf, storeAs } from './build.ts'
import { analyzeCondition } from './conditions.ts'
import { errorAt, newId, type AnalysisContext, type AnalyzedQuery, type AnalyzedRelation } from './context.ts'
import { verifyScalar, verifyWrittenScalar } from './expression-state.ts'
import { analyzeExpression } from './expressions.ts'
import { notNull } from './not-null.ts'
import { outerJoinWithQueries } from './outer-join-queries.ts'
import { analyzeRelation } from './relations.ts'
import { qualify, type TableName } from './resolve.ts'
import { emptyScope, type Field, type Scope } from './scope.ts'
import { noteTargetReads, withRowFilter } from './table-policies.ts'
import { scanTable } from './tables.ts'
import type { ColumnId, ComputedColumn, Expr, JoinNode, RelationNode } from './tree.ts'
import { isQuery, someExpr } from './walk.ts'

export type RowChange = Delete | Update | Merge

/** A statement that changes rows of a table, or writes them again. */
export type RowStatement = RowChange | TableExecute

export function changedTableOf(node: RowStatement): QualifiedName {
  return node.kind === 'Merge' ? node.target : node.table
}

/**
 * The rows that a statement writes. EXECUTE optimize writes the rows of the table; these need no right to read, and the
 * checks have refused tables with policies. All others write `changeColumns`, then the columns of the table.
 *
 * DELETE and UPDATE filter a scan of the table that has row ids. MERGE joins such a scan with its source, numbers the
 * case that takes a row, and computes the values of that case.
 * Source: Trino 476, StatementAnalyzer.visitDelete, visitUpdate and visitMerge, QueryPlanner.planMerge.
 */
export function analyzeWrittenRows(context: AnalysisContext, node: RowStatement): AnalyzedQuery {
  switch (node.kind) {
    case 'Delete':
      return deletedRows(context, node)
    case 'Update':
      return updatedRows(context, node)
    case 'Merge':
      return mergedRows(context, node)
    case 'TableExecute': {
      const { scan } = findTarget(context, node, undefined)
      const columns = scan.fields.filter(({ hidden }) => hidden !== true)
      return { node: scan.node, columns, ordered: false }
    }
  }
}

// ---- The target

/** The table whose rows change. */
interface Target extends AnalyzedRelation {
  readonly name: TableName
  readonly file: Expr
  readonly row: Expr
  readonly columns: readonly TargetColumn[]
}

interface TargetColumn {
  readonly name: string
  readonly type: SqlType
  readonly nullable: boolean
  readonly column: ColumnId
}

function analyzeTarget(context: AnalysisContext, node: RowChange, alias?: Identifier): Target {
  const { name, table, scan } = findTarget(context, node, alias)
  const [file, row] = [newId(context), newId(context)]
  const rowIds = [
    { id: file, name: '$file' },
    { id: row, name: '$row' },
  ]
  const seen = withRowFilter(context, node, name, { node: { ...scan.node, rowIds }, fields: scan.fields })
  const columns = table.columns.flatMap(({ name: column, type, nullable, hidden }, i) =>
    hidden === true ? [] : [{ name: column, type: parseTypeText(type), nullable, column: seen.fields[i]!.column }],
  )
  return { ...seen, name, file: columnOf(file, INTEGER), row: columnOf(row, BIGINT), columns }
}

function findTarget(context: AnalysisContext, node: RowStatement, alias: Identifier | undefined) {
  const written = changedTableOf(node)
  const name = qualify(written, context.session)
  const table = context.metadata.table(name)
  if (table === undefined) {
    throw errorAt(context, node, 'TABLE_NOT_FOUND', `Table '${shownName(name)}' does not exist`)
  }
  const prefix = alias === undefined ? written.parts : [alias]
  const relation = prefix.map((part) => part.value.toLowerCase())
  return { name, table, scan: scanTable(context, name, table, relation) }
}

function columnNamed({ columns }: Target, name: string): TargetColumn | undefined {
  return columns.find((column) => column.name.toLowerCase() === name.toLowerCase())
}

function scopeOf(fields: readonly Field[]): Scope {
  return { ...emptyScope, fields, boundary: true }
}

/** The values of a written row, and what the row does. */
interface WrittenRow {
  /** As `changeColumns`. */
  readonly change: readonly [file: Expr, row: Expr, live: Expr, caseNumber: Expr]
  /** In the order of the table's columns. */
  readonly values: readonly Expr[]
}

function written(
  context: AnalysisContext,
  input: RelationNode,
  target: Target,
  { change, values }: WrittenRow,
): AnalyzedQuery {
  const columns = [...change, ...values].map((expression): ComputedColumn => ({ id: newId(context), expression }))
  const names = [...changeColumns, ...target.columns].map(({ name }) => name)
  return {
    node: { kind: 'project', input, columns },
    columns: columns.map(({ id, expression }, i) => ({ name: names[i]!, type: expression.type, column: id })),
    ordered: false,
  }
}

const NO_CASE = constantOf(INTEGER, null)

function conditionOf(context: AnalysisContext, target: Target, where: Expression | undefined): Expr | undefined {
  return where && analyzeCondition(context, where, scopeOf(target.fields), 'WHERE clause')
}

function filteredBy(input: RelationNode, predicate: Expr | undefined): RelationNode {
  return predicate === undefined ? input : { kind: 'filter', input, predicate }
}

// ---- DELETE and UPDATE

function deletedRows(context: AnalysisContext, node: Delete): AnalyzedQuery {
  const target = analyzeTarget(context, node)
  const where = conditionOf(context, target, node.where)
  noteTargetReads(context, target, [where])
  return written(context, filteredBy(target.node, where), target, {
    change: [target.file, target.row, constantOf(BOOLEAN, false), NO_CASE],
    values: target.columns.map(({ type }) => constantOf(type, null)),
  })
}

function updatedRows(context: AnalysisContext, node: Update): AnalyzedQuery {
  const target = analyzeTarget(context, node)
  const where = conditionOf(context, target, node.where)
  const scope = scopeOf(target.fields)
  const assigned = new Map<string, Expr>()
  for (const { name, value } of node.assignments) {
    if (assigned.has(name.value.toLowerCase())) {
      throw errorAt(context, name, 'DUPLICATE_COLUMN_NAME', `Column name '${name.value}' specified more than once`)
    }
    assigned.set(name.value.toLowerCase(), assignedValue(context, value, scope, 'UPDATE SET'))
  }
  const columns = [...assigned.keys()].map((name) => columnNamed(target, name)!)
  verifyTypes(context, node, "UPDATE table column types don't match SET expressions", columns, [...assigned.values()])
  noteTargetReads(context, target, [where, ...assigned.values()])
  return written(context, filteredBy(target.node, where), target, {
    change: [target.file, target.row, constantOf(BOOLEAN, true), NO_CASE],
    values: target.columns.map((column) => {
      const value = assigned.get(column.name)
      return value === undefined
        ? columnOf(column.column, column.type)
        : stored(context, column, value, 'INVALID_ARGUMENTS')
    }),
  })
}

function assignedValue(context: AnalysisContext, value: Expression, scope: Scope, clause: string): Expr {
  verifyWrittenScalar(context, value, clause)
  const analyzed = analyzeExpression(context, value, scope)
  verifyScalar(context, value, analyzed, clause)
  return analyzed.expr
}

function verifyTypes(
  context: AnalysisContext,
  node: RowChange | MergeCase,
  message: string,
  columns: readonly TargetColumn[],
  values: readonly Expr[],
): void {
  const [to, from] = [columns.map(({ type }) => type), values.map(({ type }) => type)]
  if (canInsertAll(from, to)) return
  const lists = `Table: [${typeNames(to)}], Expressions: [${typeNames(from)}]`
  throw errorAt(context, node, 'TYPE_MISMATCH', `${message}: ${lists}`)
}

/** The value as the column stores it. */
function stored(
  context: AnalysisContext,
  { name, type, nullable }: TargetColumn,
  value: Expr,
  refusal: ErrorName,
): Expr {
  const converted = storeAs(value, type)
  return nullable ? converted : notNull(newId(context), name, converted, refusal)
}

// ---- MERGE

function mergedRows(context: AnalysisContext, node: Merge): AnalyzedQuery {
  const target = analyzeTarget(context, node, node.targetAlias)
  const source = analyzeRelation(context, node.source, emptyScope)
  const access = context.access?.policies(qualify(node.target, context.session))
  if ((access?.masks.size ?? 0) > 0) {
    throw errorAt(context, node, 'NOT_SUPPORTED', 'Cannot merge into a table with column masks')
  }
  const fields = [...target.fields, ...source.fields]
  const condition = analyzeCondition(context, node.predicate, scopeOf(fields), 'The MERGE predicate')
  const cases = node.cases.map((one, number) => analyzeCase(context, node, one, { number, target, fields }))
  noteTargetReads(context, target, [condition, ...cases.flatMap(({ condition: when, given }) => [when, ...given])])
  const inserts = cases.some(({ kind }) => kind === 'MergeInsert')

  const isMatched: Expr = { kind: 'not', type: BOOLEAN, value: { kind: 'isNull', type: BOOLEAN, value: target.file } }
  const number = newId(context)
  const caseNumber = columnOf(number, INTEGER)
  const numbered: RelationNode = {
    kind: 'project',
    input: joined(context, target, source, condition, inserts),
    columns: [{ id: number, expression: numberOfCase(cases, isMatched) }],
  }
  // Matched rows that no case takes are written too, because they count when multiple matches are looked for.
  const isTaken = comparison('>=', caseNumber, constantOf(INTEGER, '0'))
  const rows: RelationNode = inserts
    ? { kind: 'filter', input: numbered, predicate: { kind: 'or', type: BOOLEAN, terms: [isMatched, isTaken] } }
    : numbered

  const ofCase = (type: SqlType, value: (one: AnalyzedCase) => Expr | undefined): Expr => {
    const branches = cases.flatMap((one, i) => {
      const then = value(one)
      return then === undefined ? [] : [{ when: comparison('=', caseNumber, constantOf(INTEGER, String(i))), then }]
    })
    return branches.length === 0 ? constantOf(type, null) : { kind: 'case', type, branches, otherwise: undefined }
  }
  const matchedCase: Expr = {
    kind: 'case',
    type: INTEGER,
    branches: [{ when: isMatched, then: caseNumber }],
    otherwise: undefined,
  }
  return written(context, rows, target, {
    change: [
      target.file,
      target.row,
      ofCase(BOOLEAN, ({ kind }) => constantOf(BOOLEAN, kind !== 'MergeDelete')),
      matchedCase,
    ],
    values: target.columns.map(({ type }, i) => ofCase(type, ({ values }) => values?.[i])),
  })
}

interface AnalyzedCase {
  readonly kind: MergeCase['kind']
  readonly condition: Expr | undefined
  /** The values that the text of the case contains. */
  readonly given: readonly Expr[]
  /** In the order of the table's columns; undefined for DELETE. */
  readonly values: readonly Expr[] | undefined
}

interface CaseScope {
  readonly number: number
  readonly target: Target
  readonly fields: readonly Field[]
}

function analyzeCase(
  context: AnalysisContext,
  merge: Merge,
  node: MergeCase,
  { number, target, fields }: CaseScope,
): AnalyzedCase {
  const scope = scopeOf(fields)
  const columns = columnsOfCase(context, merge, node, target)
  const { kind } = node
  const condition = node.condition && analyzeCondition(context, node.condition, scope, 'WHERE clause predicate')
  if (node.kind === 'MergeDelete') return { kind, condition, given: [], values: undefined }
  const expressions = node.kind === 'MergeInsert' ? node.values : node.assignments.map(({ value }) => value)
  const values = expressions.map((value) => assignedValue(context, value, scope, 'MERGE SET'))
  const message = `MERGE table column types don't match for MERGE case ${number}, SET expressions`
  verifyTypes(context, node, message, columns, values)
  const assigned = new Map(columns.map(({ name }, i) => [name, values[i]!]))
  return {
    kind,
    condition,
    given: values,
    values: target.columns.map((column) => {
      const value = assigned.get(column.name)
      if (value === undefined && kind === 'MergeUpdate') return columnOf(column.column, column.type)
      return stored(context, column, value ?? constantOf(column.type, null), 'CONSTRAINT_VIOLATION')
    }),
  }
}

/** The columns that a case writes, in its own order. */
function columnsOfCase(
  context: AnalysisContext,
  merge: Merge,
  node: MergeCase,
  target: Target,
): readonly TargetColumn[] {
  if (node.kind === 'MergeDelete') return []
  const named = node.kind === 'MergeInsert' ? node.columns : node.assignments.map(({ name }) => name)
  if (named.length === 0) return target.columns
  const columns = new Map<string, TargetColumn>()
  for (const { value } of named) {
    const name = value.toLowerCase()
    const column = columnNamed(target, name)
    if (column === undefined) {
      throw errorAt(context, merge, 'COLUMN_NOT_FOUND', `Merge column name does not exist in target table: ${name}`)
    }
    if (columns.has(name)) {
      throw errorAt(context, merge, 'DUPLICATE_COLUMN_NAME', `Merge column name is specified more than once: ${name}`)
    }
    columns.set(name, column)
  }
  return [...columns.values()]
}

/** The target's rows beside the source's; rows of the source without a match stay if a case inserts them. */
function joined(
  context: AnalysisContext,
  target: Target,
  source: AnalyzedRelation,
  condition: Expr,
  inserts: boolean,
): JoinNode {
  if (!inserts) {
    return { kind: 'join', type: 'inner', lateral: false, left: target.node, right: source.node, condition }
  }
  const join: JoinNode = {
    kind: 'join',
    type: 'left',
    lateral: false,
    left: source.node,
    right: target.node,
    condition,
  }
  if (!someExpr(condition, isQuery)) return join
  const side = ({ node, fields }: AnalyzedRelation) => ({ node, columns: new Set(fields.map(({ column }) => column)) })
  return outerJoinWithQueries(context, 'left', condition, side(source), side(target))
}

/** The number of the first case that takes the row, and -1 if there is none. */
function numberOfCase(cases: readonly AnalyzedCase[], isMatched: Expr): Expr {
  const isNew: Expr = { kind: 'not', type: BOOLEAN, value: isMatched }
  return {
    kind: 'case',
    type: INTEGER,
    branches: cases.map(({ kind, condition }, i) => {
      const side = kind === 'MergeInsert' ? isNew : isMatched
      return {
        when: condition === undefined ? side : { kind: 'and', type: BOOLEAN, terms: [side, condition] },
        then: constantOf(INTEGER, String(i)),
      }
    }),
    otherwise: constantOf(INTEGER, '-1'),
  }
}
