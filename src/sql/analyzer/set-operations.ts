import type { QueryBody, SetOperation } from '../syntax/ast-query.ts'
import { commonSuperType } from '../types/coercion.ts'
import { isComparable, sameType, type SqlType } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { castTo, columnOf } from './build.ts'
import { errorAt, newId, type AnalysisContext, type AnalyzedQuery, type QueryColumn } from './context.ts'
import type { ComputedColumn, ColumnId, RelationNode, SetNode } from './tree.ts'

type Operand = Pick<AnalyzedQuery, 'node' | 'columns'>

/**
 * Analyzes UNION, INTERSECT and EXCEPT: combines the columns of both sides by position, in their common types, with the
 * left side's names.
 */
export function analyzeSetOperation(
  context: AnalysisContext,
  operation: SetOperation,
  analyzeOperand: (operand: QueryBody) => AnalyzedQuery,
): AnalyzedQuery {
  let left: Operand = analyzeOperand(operation.left)
  let right: Operand = analyzeOperand(operation.right)
  if (operation.corresponding !== undefined) [left, right] = corresponding(context, operation, left, right)
  const { operator } = operation
  if (left.columns.length !== right.columns.length) {
    throw errorAt(
      context,
      operation,
      'TYPE_MISMATCH',
      `${operator} query has different number of fields: ${left.columns.length}, ${right.columns.length}`,
    )
  }
  const types = left.columns.map(({ type }, i) => {
    const other = right.columns[i]!.type
    const common = commonSuperType(type, other)
    if (common === undefined) {
      throw errorAt(
        context,
        operation,
        'TYPE_MISMATCH',
        `column ${i + 1} in ${operator} query has incompatible types: ${typeName(type)}, ${typeName(other)}`,
      )
    }
    return common
  })
  const distinct = operation.distinct || operator !== 'UNION'
  for (const type of types) {
    if (!distinct || isComparable(type)) continue
    throw errorAt(
      context,
      operation,
      'TYPE_MISMATCH',
      `Type ${typeName(type)} is not comparable and therefore cannot be used in ${operator}${operator === 'UNION' ? ' DISTINCT' : ''}`,
    )
  }
  const columns = types.map((type) => ({ id: newId(context), type }))
  const setOperator = operator.toLowerCase() as SetNode['operator']
  const all = !operation.distinct
  return {
    node: {
      kind: 'set',
      operator: setOperator,
      all,
      columns,
      inputs: [...flattened(context, left, types, setOperator, all), coerced(context, right, types)],
    },
    columns: columns.map(({ id, type }, i) => ({ name: left.columns[i]!.name, type, column: id })),
    ordered: false,
  }
}

type Input = SetNode['inputs'][number]

/** A chain of the same UNION becomes one node with many inputs: a thousand nested nodes would be too deep. */
function flattened(
  context: AnalysisContext,
  left: Operand,
  types: readonly SqlType[],
  operator: SetNode['operator'],
  all: boolean,
): readonly Input[] {
  const { node } = left
  if (node.kind !== 'set' || operator !== 'union' || node.operator !== 'union' || node.all !== all) {
    return [coerced(context, left, types)]
  }
  const position = new Map(node.columns.map((column, i) => [column.id, i]))
  const order = left.columns.map(({ column }) => position.get(column))
  return node.inputs.map((input) =>
    coerced(
      context,
      {
        node: input.node,
        columns: order.map((at) => ({ name: undefined, type: node.columns[at!]!.type, column: input.columns[at!]! })),
      },
      types,
    ),
  )
}

function coerced(context: AnalysisContext, operand: Operand, types: readonly SqlType[]): Input {
  const computed: ComputedColumn[] = []
  const columns = operand.columns.map(({ column, type }, i): ColumnId => {
    const wanted = types[i]!
    if (sameType(type, wanted)) return column
    const id = newId(context)
    computed.push({ id, expression: castTo(columnOf(column, type), wanted) })
    return id
  })
  const node: RelationNode =
    computed.length === 0 ? operand.node : { kind: 'project', input: operand.node, columns: computed }
  return { node, columns }
}

/** CORRESPONDING: the columns whose names occur on both sides, in the left side's order. */
function corresponding(
  context: AnalysisContext,
  operation: SetOperation,
  left: Operand,
  right: Operand,
): [Operand, Operand] {
  if (operation.corresponding!.columns.length > 0) {
    throw errorAt(context, operation, 'NOT_SUPPORTED', 'CORRESPONDING with columns is unsupported')
  }
  for (const { columns } of [left, right]) {
    if (columns.some((column) => column.name === undefined)) {
      throw errorAt(
        context,
        operation,
        'MISSING_COLUMN_NAME',
        'Anonymous columns are not allowed in set operations with CORRESPONDING',
      )
    }
  }
  const named = (side: Operand): Map<string, QueryColumn> => {
    const byName = new Map<string, QueryColumn>()
    for (const column of side.columns) {
      const name = column.name!.toLowerCase()
      if (byName.has(name)) {
        const message = `Duplicate columns found when using CORRESPONDING in set operations: ${name}`
        throw errorAt(context, operation, 'AMBIGUOUS_NAME', message)
      }
      byName.set(name, column)
    }
    return byName
  }
  const l = named(left)
  const r = named(right)
  const names = [...l.keys()].filter((name) => r.has(name))
  if (names.length === 0) {
    throw errorAt(context, operation, 'MISMATCHED_COLUMN_ALIASES', 'No corresponding columns')
  }
  return [
    { node: left.node, columns: names.map((name) => l.get(name)!) },
    { node: right.node, columns: names.map((name) => r.get(name)!) },
  ]
}
