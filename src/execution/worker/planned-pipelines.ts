import { knownSum } from '../../shared/known-sum.ts'
import { unreachable } from '../../shared/unreachable.ts'
import type { OperatorStats, PipelineStats, TaskStats } from '../api/task.ts'
import { LOCAL_EXCHANGE_SINK, LOCAL_EXCHANGE_SOURCE, type OperatorShape } from './operator-names.ts'

/** A node of a plan under the name that EXPLAIN gives it. */
export interface PlannedNode {
  readonly name: string
  readonly details: Readonly<Record<string, string>>
  readonly layout: readonly string[]
  readonly children: readonly PlannedNode[]
}

/** The facts that the splits give about one scan of a task; a field is undefined where the splits do not give it. */
export interface PlannedScan {
  /** `catalog:schema:table`, as the plan's scans name it. */
  readonly table: string
  readonly rows: number | undefined
  /** Compressed bytes of the columns that are read. */
  readonly bytes: number | undefined
}

/** The plan of a task: its statement's operators, and its scans. */
export interface PlannedPlan {
  readonly outline: PlannedNode
  readonly scans: readonly PlannedScan[]
}

/** An operator of a task that was not profiled. `unknown` names the counts that are 0 because they were not counted. */
export interface PlannedOperator extends OperatorStats {
  readonly unknown?: readonly ('inputPositions' | 'outputPositions')[]
}

export interface PlannedPipeline extends PipelineStats {
  readonly operators: PlannedOperator[]
}

/**
 * An operator before it gets its number, listed from the output to the source; rows are undefined where they were not
 * counted.
 */
interface Draft {
  readonly type: string
  readonly node: string
  readonly rowsIn: number | undefined
  readonly rowsOut: number | undefined
  /** The scan that this operator does. */
  readonly scan?: PlannedScan
}

interface Walk {
  readonly done: Draft[][]
  readonly rows: ReadonlyMap<PlannedNode, number>
  readonly scans: ReadonlyMap<string, PlannedScan>
}

/** Stands for all tables of a task without an available plan. */
const ALL_TABLES = '*'

/**
 * The pipelines of a task that was not profiled: its operators as planned; `engineOperator` is the plan's node. Row
 * counts are those that the splits and the output determine. The task's times, drivers and output are shown at its
 * output pipeline.
 *
 * @param plan undefined when it is not available: then one scan stands for all
 */
export function plannedPipelines(stats: TaskStats, plan?: PlannedPlan): readonly PlannedPipeline[] {
  const all = { table: ALL_TABLES, rows: stats.rawInputPositions, bytes: stats.rawInputBytes }
  const scans = plan ? checkedScans(plan.scans, stats) : [all]
  const outline = plan?.outline ?? {
    name: 'Output',
    details: {},
    layout: [],
    children: [scanNode(all, 'ScanFilterProject')],
  }
  const byTable = new Map(scans.map((scan) => [scan.table, scan]))
  const walk: Walk = { done: [], rows: countRows(outline, byTable, stats.outputPositions), scans: byTable }
  // The outline does not show the scans of a WITH query or of a subquery in an expression: they come first.
  const shown = tablesOf(outline)
  for (const scan of scans) if (!shown.has(scan.table)) cut(walk, scanNode(scan), exchangeSink(undefined))
  const [output, rest] = [walk.rows.get(outline), outline.children[0] ?? outline]
  cut(walk, rest, { type: 'TaskOutputOperator', node: outline.name, rowsIn: output, rowsOut: output })
  const last = walk.done.length - 1
  return walk.done.map((drafts, id) => plannedPipeline(id, drafts, id === last ? stats : undefined))
}

/** Drops row counts that do not add up to the rows the task read: they count splits that the task did not run. */
function checkedScans(scans: readonly PlannedScan[], stats: TaskStats): readonly PlannedScan[] {
  const [only, ...others] = scans
  if (only && others.length === 0) return [{ ...only, rows: stats.rawInputPositions, bytes: stats.rawInputBytes }]
  return knownSum(scans.map(({ rows }) => rows)) === stats.rawInputPositions
    ? scans
    : scans.map(({ table }) => ({ table, rows: undefined, bytes: undefined }))
}

function scanNode({ table }: PlannedScan, name = 'TableScan'): PlannedNode {
  return { name, details: { table }, layout: [], children: [] }
}

function tablesOf({ details, children }: PlannedNode): ReadonlySet<string | undefined> {
  return new Set([details['table'], ...children.flatMap((child) => [...tablesOf(child)])])
}

/** Counts the rows that each node gives, where the scans below it or the output above it determine them. */
function countRows(
  outline: PlannedNode,
  scans: ReadonlyMap<string, PlannedScan>,
  outputRows: number,
): ReadonlyMap<PlannedNode, number> {
  const rows = new Map<PlannedNode, number>()
  /** @param stopped a LIMIT above may have ended the node before it gave all its rows */
  const count = (node: PlannedNode, stopped: boolean): number | undefined => {
    const { kind } = shapeOf(node)
    const stopsInputs = node.name === 'Limit' || (stopped && kind !== 'breaker')
    const inputs = node.children.map((child) => count(child, stopsInputs))
    const given = stopped ? undefined : rowsGiven(node, inputs, scans)
    if (given !== undefined) rows.set(node, given)
    return given
  }
  count(outline, false)
  // Nodes that keep the number of rows also get it from the output.
  for (
    let node: PlannedNode | undefined = outline;
    node;
    node = KEEPS_ROWS.has(node.name) ? node.children[0] : undefined
  )
    rows.set(node, outputRows)
  return rows
}

const KEEPS_ROWS: ReadonlySet<string> = new Set(['Output', 'Project', 'Window', 'Sort'])

function rowsGiven(
  node: PlannedNode,
  inputs: readonly (number | undefined)[],
  scans: ReadonlyMap<string, PlannedScan>,
): number | undefined {
  const { name, details } = node
  switch (name) {
    case 'TableScan':
    case 'ScanProject':
      return scans.get(details['table'] ?? '')?.rows
    case 'Values':
      return Number(details['rows'])
    case 'Union':
      return knownSum(inputs)
    case 'Aggregate':
      return isGrouped(node) ? undefined : 1
    default:
      return KEEPS_ROWS.has(name) ? inputs[0] : undefined
  }
}

/** An aggregation without keys and without columns of its own is the DISTINCT of a UNION. */
function isGrouped({ details, layout }: PlannedNode): boolean {
  return details['keys'] !== undefined || layout.length === 0
}

/** The shape of the engine's operator that does the work of a node, in Trino's names. */
function shapeOf(node: PlannedNode): Exclude<OperatorShape, { kind: 'cte' | 'delimJoin' | 'output' }> {
  switch (node.name) {
    case 'TableScan':
      return { kind: 'source', name: 'TableScanOperator' }
    case 'ScanFilter':
    case 'ScanProject':
    case 'ScanFilterProject':
      return { kind: 'source', name: 'ScanFilterAndProjectOperator' }
    case 'Values':
      return { kind: 'source', name: 'ValuesOperator' }
    case 'CteScan':
      return { kind: 'source', name: LOCAL_EXCHANGE_SOURCE }
    case 'Filter':
    case 'Project':
    case 'Sample':
      return { kind: 'pass', name: 'FilterAndProjectOperator' }
    case 'Unnest':
    case 'CrossJoinUnnest':
      return { kind: 'pass', name: 'UnnestOperator' }
    case 'Limit':
      return { kind: 'pass', name: 'LimitOperator' }
    case 'Aggregate':
      return { kind: 'breaker', name: isGrouped(node) ? 'HashAggregationOperator' : 'AggregationOperator' }
    case 'Window':
      return { kind: 'breaker', name: 'WindowOperator' }
    case 'TopN':
      return { kind: 'breaker', name: 'TopNOperator' }
    case 'Sort':
      return { kind: 'breaker', name: 'OrderByOperator' }
    case 'InnerJoin':
    case 'LeftJoin':
    case 'RightJoin':
    case 'FullJoin':
      return { kind: 'join', build: 'HashBuilderOperator', probe: 'LookupJoinOperator' }
    case 'CrossJoin':
      return { kind: 'join', build: 'NestedLoopBuildOperator', probe: 'NestedLoopJoinOperator' }
    case 'Union':
    case 'Intersect':
    case 'Except':
      return { kind: 'union' }
    default:
      return { kind: 'pass', name: `${node.name}Operator` }
  }
}

/** Lists the operators of one pipeline down to its source; the pipelines that feed it are listed before it. */
function cut(walk: Walk, from: PlannedNode, sink: Draft): void {
  const drafts = [sink]
  addOperators(walk, from, drafts)
  walk.done.push(drafts.toReversed())
}

function addOperators(walk: Walk, node: PlannedNode, into: Draft[]): void {
  const shape = shapeOf(node)
  const [first, second] = node.children
  const rowsOut = walk.rows.get(node)
  const rowsIn = first && walk.rows.get(first)
  switch (shape.kind) {
    case 'source': {
      const scan = walk.scans.get(node.details['table'] ?? '')
      into.push({
        type: shape.name,
        node: node.name,
        rowsIn: scan ? scan.rows : rowsOut,
        rowsOut,
        ...(scan && { scan }),
      })
      return
    }
    case 'pass':
      into.push({ type: shape.name, node: node.name, rowsIn: first ? rowsIn : rowsOut, rowsOut })
      if (first) addOperators(walk, first, into)
      return
    case 'breaker':
      into.push({ type: shape.name, node: node.name, rowsIn: 0, rowsOut })
      if (first) cut(walk, first, { type: shape.name, node: node.name, rowsIn, rowsOut: 0 })
      return
    case 'join': {
      const build = second && walk.rows.get(second)
      if (second) cut(walk, second, { type: shape.build, node: node.name, rowsIn: build, rowsOut: 0 })
      into.push({ type: shape.probe, node: node.name, rowsIn, rowsOut })
      if (first) addOperators(walk, first, into)
      return
    }
    case 'union':
      for (const child of node.children) cut(walk, child, exchangeSink(walk.rows.get(child)))
      into.push({ type: LOCAL_EXCHANGE_SOURCE, node: node.name, rowsIn: rowsOut, rowsOut })
      return
    default:
      return unreachable(shape)
  }
}

function exchangeSink(rows: number | undefined): Draft {
  return { type: LOCAL_EXCHANGE_SINK, node: 'LocalExchange', rowsIn: rows, rowsOut: rows }
}

/** @param stats figures of the task, for its output pipeline */
function plannedPipeline(pipelineId: number, drafts: readonly Draft[], stats: TaskStats | undefined): PlannedPipeline {
  const scan = drafts[0]?.scan
  const input = { positions: scan?.rows ?? 0, bytes: scan?.bytes ?? 0 }
  return {
    pipelineId,
    inputPipeline: scan !== undefined,
    outputPipeline: stats !== undefined,
    memoryBytes: stats?.memoryBytes ?? 0,
    rawInputBytes: input.bytes,
    rawInputPositions: input.positions,
    processedInputBytes: input.bytes,
    processedInputPositions: input.positions,
    outputBytes: stats?.outputBytes ?? 0,
    outputPositions: stats?.outputPositions ?? drafts.at(-1)?.rowsIn ?? 0,
    totalDrivers: stats?.totalDrivers ?? 0,
    queuedDrivers: stats?.queuedDrivers ?? 0,
    runningDrivers: stats?.runningDrivers ?? 0,
    completedDrivers: stats?.completedDrivers ?? 0,
    scheduledNanos: stats?.scheduledNanos ?? 0,
    cpuNanos: stats?.cpuNanos ?? 0,
    blockedNanos: stats?.blockedNanos ?? 0,
    operators: drafts.map((draft, id) => {
      const isOutput = stats !== undefined && id === drafts.length - 1
      return plannedOperator(id, draft, isOutput ? stats.outputBytes : 0)
    }),
    drivers: [],
  }
}

function plannedOperator(operatorId: number, draft: Draft, outputBytes: number): PlannedOperator {
  const { rowsIn, rowsOut } = draft
  const unknown = [
    ...(rowsIn === undefined ? (['inputPositions'] as const) : []),
    ...(rowsOut === undefined ? (['outputPositions'] as const) : []),
  ]
  return {
    operatorId,
    operatorType: draft.type,
    engineOperator: draft.node,
    inputPositions: rowsIn ?? 0,
    outputPositions: rowsOut ?? 0,
    inputBytes: draft.scan?.bytes ?? 0,
    outputBytes,
    timeNanos: 0,
    blockedNanos: 0,
    addInputCalls: 0,
    getOutputCalls: 0,
    finishCalls: 0,
    ...(unknown.length > 0 && { unknown }),
  }
}
