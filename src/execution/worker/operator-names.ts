import { unreachable } from '../../shared/unreachable.ts'
import type { DuckDbOperator } from '../engine/engine.ts'

/** The part that an operator of DuckDB plays in its pipeline. */
export type OperatorShape =
  /** Rows begin here. */
  | { readonly kind: 'source'; readonly name: string }
  /** Rows pass through. */
  | { readonly kind: 'pass'; readonly name: string }
  /** Reads all its input before it gives a row: ends one pipeline and begins the next. */
  | { readonly kind: 'breaker'; readonly name: string }
  /** The probe side passes through; the build side is a pipeline of its own. */
  | { readonly kind: 'join'; readonly build: string; readonly probe: string }
  /** Each child is a pipeline of its own that feeds this one. */
  | { readonly kind: 'union' }
  /** The first child is computed once; the second continues the pipeline and reads the result. */
  | { readonly kind: 'cte' }
  /** A correlated join: left input, the join itself, the distinct keys. */
  | { readonly kind: 'delimJoin' }
  /** Writes the task's output. */
  | { readonly kind: 'output'; readonly name: string }

const source = (name: string): OperatorShape => ({ kind: 'source', name })
const pass = (name: string): OperatorShape => ({ kind: 'pass', name })
const breaker = (name: string): OperatorShape => ({ kind: 'breaker', name })
const NESTED_LOOP: OperatorShape = {
  kind: 'join',
  build: 'NestedLoopBuildOperator',
  probe: 'NestedLoopJoinOperator',
}
const FILTER_AND_PROJECT = 'FilterAndProjectOperator'
export const LOCAL_EXCHANGE_SOURCE = 'LocalExchangeSourceOperator'
export const LOCAL_EXCHANGE_SINK = 'LocalExchangeSinkOperator'

/** DuckDB's physical operators in Trino's names; joins and scans are handled separately. */
const shapes: Readonly<Record<string, OperatorShape>> = {
  PROJECTION: pass(FILTER_AND_PROJECT),
  FILTER: pass(FILTER_AND_PROJECT),
  UNNEST: pass('UnnestOperator'),
  INOUT_FUNCTION: pass('TableFunctionOperator'),
  STREAMING_LIMIT: pass('LimitOperator'),
  STREAMING_WINDOW: pass('WindowOperator'),
  STREAMING_SAMPLE: pass(FILTER_AND_PROJECT),
  LIMIT: breaker('LimitOperator'),
  LIMIT_PERCENT: breaker('LimitOperator'),
  RESERVOIR_SAMPLE: breaker(FILTER_AND_PROJECT),
  WINDOW: breaker('WindowOperator'),
  TOP_N: breaker('TopNOperator'),
  ORDER_BY: breaker('OrderByOperator'),
  HASH_GROUP_BY: breaker('HashAggregationOperator'),
  PERFECT_HASH_GROUP_BY: breaker('HashAggregationOperator'),
  PARTITIONED_AGGREGATE: breaker('HashAggregationOperator'),
  UNGROUPED_AGGREGATE: breaker('AggregationOperator'),
  SIMPLE_AGGREGATE: breaker('AggregationOperator'),
  NESTED_LOOP_JOIN: NESTED_LOOP,
  BLOCKWISE_NL_JOIN: NESTED_LOOP,
  PIECEWISE_MERGE_JOIN: NESTED_LOOP,
  IE_JOIN: NESTED_LOOP,
  CROSS_PRODUCT: NESTED_LOOP,
  POSITIONAL_JOIN: NESTED_LOOP,
  ASOF_JOIN: NESTED_LOOP,
  UNION: { kind: 'union' },
  RECURSIVE_CTE: { kind: 'union' },
  RECURSIVE_KEY_CTE: { kind: 'union' },
  CTE: { kind: 'cte' },
  LEFT_DELIM_JOIN: { kind: 'delimJoin' },
  RIGHT_DELIM_JOIN: { kind: 'delimJoin' },
  CTE_SCAN: source(LOCAL_EXCHANGE_SOURCE),
  RECURSIVE_CTE_SCAN: source(LOCAL_EXCHANGE_SOURCE),
  DELIM_SCAN: source(LOCAL_EXCHANGE_SOURCE),
  COLUMN_DATA_SCAN: source('ValuesOperator'),
  DUMMY_SCAN: source('ValuesOperator'),
  EXPRESSION_SCAN: source('ValuesOperator'),
  EMPTY_RESULT: source('ValuesOperator'),
  COPY_TO_FILE: { kind: 'output', name: 'TaskOutputOperator' },
  BATCH_COPY_TO_FILE: { kind: 'output', name: 'TaskOutputOperator' },
}

/**
 * The shape of an operator. An unknown operator with a child passes rows through, under a name made from DuckDB's name,
 * so that operators of a new DuckDB release are shown instead of failing.
 * @param isPages whether a scan reads other tasks' pages, not a table
 */
export function operatorShape(operator: DuckDbOperator, isPages: (operator: DuckDbOperator) => boolean): OperatorShape {
  const known = shapes[operator.type]
  if (known) return known
  if (operator.type === 'HASH_JOIN') return hashJoin(operator)
  if (operator.children.length > 0) return pass(camelCase(operator.type))
  if (operator.type !== 'TABLE_SCAN' && !operator.type.endsWith('_SCAN')) return source(camelCase(operator.type))
  if (isPages(operator)) return source('ExchangeOperator')
  return source(operator.extraInfo['Filters'] === undefined ? 'TableScanOperator' : 'ScanFilterAndProjectOperator')
}

/** Whether the pipeline that begins with this operator reads the task's input. */
export function readsInput(shape: OperatorShape): boolean {
  switch (shape.kind) {
    case 'source':
      return shape.name !== LOCAL_EXCHANGE_SOURCE
    case 'pass':
    case 'breaker':
    case 'join':
    case 'union':
    case 'cte':
    case 'delimJoin':
    case 'output':
      return false
    default:
      return unreachable(shape)
  }
}

function hashJoin(operator: DuckDbOperator): OperatorShape {
  const type = operator.extraInfo['Join Type']
  const isSet = typeof type === 'string' && /MARK|SEMI|ANTI/.test(type)
  return isSet
    ? { kind: 'join', build: 'SetBuilderOperator', probe: 'HashSemiJoinOperator' }
    : { kind: 'join', build: 'HashBuilderOperator', probe: 'LookupJoinOperator' }
}

function camelCase(type: string): string {
  const words = type.split('_').map((word) => word.slice(0, 1) + word.slice(1).toLowerCase())
  return `${words.join('')}Operator`
}
