import type { BoundQuery } from '../sql/front-end.ts'
import type { PlanNode } from './planned-statement.ts'
import type { ScanPredicate } from '../connectors/spi/scan-predicate.ts'
import type { ColumnId, RelationNode, ScanNode } from '../sql/analyzer/tree.ts'
import { columnsOfPredicate } from './pushdown/scan-predicates.ts'
import { typeName } from '../sql/types/type-text.ts'
import { unreachable } from '../shared/unreachable.ts'

/** Facts about the columns and scans of a query. */
interface Known {
  readonly sourceOf: (column: ColumnId) => string | undefined
  /** The columns that scans show. */
  readonly asked: ReadonlySet<ColumnId>
  /** The conditions on a scan's partitions. */
  readonly constraintOf: (scan: ScanNode) => ScanPredicate | undefined
}

/** The operators of a query under Trino's names, for EXPLAIN. */
export function outline(node: RelationNode, columns: BoundQuery['columns'], known: Known): PlanNode {
  const layout = columns.map(({ name, type }, i) => `${name ?? `_col${i}`}:${typeName(type)}`)
  return {
    name: 'Output',
    details: { columnNames: `[${columns.map(({ name }, i) => name ?? `_col${i}`).join(', ')}]` },
    layout,
    children: [planOf(node, known)],
  }
}

/** One flat switch with a case for each kind of relation, hence its length. */
function planOf(node: RelationNode, known: Known): PlanNode {
  const { sourceOf, asked, constraintOf } = known
  const child = (input: RelationNode): PlanNode => planOf(input, known)
  const shown = (id: ColumnId): string => sourceOf(id)?.split('.').at(-1) ?? `expr_${id}`
  const plan = (
    name: string,
    children: readonly PlanNode[],
    details: Readonly<Record<string, string>> = {},
    layout: readonly string[] = [],
  ): PlanNode => ({
    name,
    details,
    layout,
    children,
  })
  switch (node.kind) {
    case 'scan': {
      const partitions = constraintOf(node)
      const shownColumns = node.columns.filter(({ id }) => asked.has(id))
      const about = partitions && columnsOfPredicate(partitions)
      // Columns that only rules read are hidden.
      const constrained = shownColumns.filter(({ name }) => about?.has(name)).map(({ name }) => name)
      return plan(
        'TableScan',
        [],
        {
          table: `${node.catalog}:${node.schema}:${node.table}${node.version === undefined ? '' : `@${node.version}`}`,
          ...(constrained.length > 0 && { constraint: `[${constrained.join(', ')}]` }),
        },
        shownColumns.map(({ name, type }) => `${name}:${typeName(type)}`),
      )
    }
    case 'values':
    case 'arrays':
      return plan(
        'Values',
        [],
        { rows: String(node.kind === 'values' ? node.rows.length : node.rowCount) },
        node.columns.map(({ id, type }) => `${shown(id)}:${typeName(type)}`),
      )
    case 'filter': {
      const input = child(node.input)
      return input.name === 'TableScan' ? { ...input, name: 'ScanFilter' } : plan('Filter', [input], {}, input.layout)
    }
    case 'barrier':
      return child(node.input)
    case 'project': {
      const input = child(node.input)
      const layout = [
        ...input.layout,
        ...node.columns.map(({ id, expression }) => `${shown(id)}:${typeName(expression.type)}`),
      ]
      if (input.name === 'TableScan') return { ...input, name: 'ScanProject', layout }
      if (input.name === 'ScanFilter') return { ...input, name: 'ScanFilterProject', layout }
      return plan('Project', [input], {}, layout)
    }
    case 'join': {
      const names = { cross: 'CrossJoin', inner: 'InnerJoin', left: 'LeftJoin', right: 'RightJoin', full: 'FullJoin' }
      const children = [child(node.left), child(node.right)]
      const name = node.lateral && node.right.kind === 'unnest' ? 'CrossJoinUnnest' : names[node.type]
      return plan(
        name,
        children,
        {},
        children.flatMap((each) => each.layout),
      )
    }
    case 'unnest':
      return plan('Unnest', [])
    case 'aggregate':
      return plan(
        'Aggregate',
        [child(node.input)],
        {
          type: 'FINAL',
          ...(node.keys.length === 0 ? {} : { keys: `[${node.keys.map((key) => shown(key.id)).join(', ')}]` }),
        },
        [
          ...node.keys.map((key) => `${shown(key.id)}:${typeName(key.type)}`),
          ...node.aggregates.map(({ id, call }) => `${call.function.name}_${id}:${typeName(call.type)}`),
        ],
      )
    case 'window': {
      const input = child(node.input)
      const layout = [
        ...input.layout,
        ...node.columns.map(({ id, call }) => `${call.function.name}_${id}:${typeName(call.type)}`),
      ]
      return plan('Window', [input], {}, layout)
    }
    case 'distinct': {
      const input = child(node.input)
      return plan(
        'Aggregate',
        [input],
        { type: 'FINAL', keys: `[${node.columns.map((column) => shown(column.id)).join(', ')}]` },
        input.layout,
      )
    }
    case 'sort': {
      const input = child(node.input)
      const order = node.keys.map(
        (key) => `${shown(key.column)} ${key.descending ? 'DESC' : 'ASC'} NULLS ${key.nullsFirst ? 'FIRST' : 'LAST'}`,
      )
      return plan('Sort', [input], { orderBy: `[${order.join(', ')}]` }, input.layout)
    }
    case 'limit': {
      const input = child(node.input)
      const count = node.count ?? 'ALL'
      if (input.name === 'Sort' && node.offset === undefined) {
        return { ...input, name: 'TopN', details: { count, ...input.details } }
      }
      const offset: Readonly<Record<string, string>> = node.offset === undefined ? {} : { offset: node.offset }
      return plan('Limit', [input], { count, ...offset }, input.layout)
    }
    case 'set': {
      const names = { union: 'Union', intersect: 'Intersect', except: 'Except' }
      const union = plan(
        names[node.operator],
        node.inputs.map((input) => child(input.node)),
      )
      return node.all || node.operator !== 'union' ? union : plan('Aggregate', [union], { type: 'FINAL' })
    }
    case 'with': {
      const body = child(node.body)
      return body
    }
    case 'cte':
      return plan(
        'CteScan',
        [],
        { cte: String(node.table) },
        node.columns.map(({ id, type }) => `${shown(id)}:${typeName(type)}`),
      )
    case 'sample':
      return plan('Sample', [child(node.input)], { ratio: String(node.percentage / 100) })
    case 'sequence':
      return plan('TableFunctionProcessor', [], { name: 'sequence' })
    default:
      return unreachable(node)
  }
}
