import { bytesOfColumn } from '../../../execution/api/fragment.ts'
import type { PlanNode } from '../../../planner/planned-statement.ts'
import type { Stage } from '../../../planner/query-plan.ts'
import { formatSize } from '../../../shared/durations.ts'
import { knownSum } from '../../../shared/known-sum.ts'

/** The estimate of a node's output before it runs; an absent field is unknown. */
export interface PlanEstimate {
  readonly rows?: number
  /** Compressed, as stored: only for scans and for nodes that pass on a scan's rows. */
  readonly bytes?: number
}

/** The parts of a stage that give the sizes of tables; recorded stages have them too. */
type SizedStage = Pick<Stage, 'splits'> & { readonly fragment?: Stage['fragment'] | undefined }

/**
 * Estimates the rows of each node of a plan from the splits that its scans will read. Numbers that depend on values
 * (filters, joins by key, groups) are unknown, as they are in Trino without column statistics: the engine optimises a
 * fragment itself, and EXPLAIN ANALYZE shows the engine's estimate for each operator.
 */
export function estimatePlan(outline: PlanNode, stages: readonly SizedStage[]): ReadonlyMap<PlanNode, PlanEstimate> {
  const tables = tableSizes(stages)
  const estimates = new Map<PlanNode, PlanEstimate>()
  const estimate = (node: PlanNode): PlanEstimate => {
    const found = estimateOf(node, node.children.map(estimate), tables)
    estimates.set(node, found)
    return found
  }
  estimate(outline)
  return estimates
}

/** Sizes by `catalog:schema:table`, the form in which scans are shown; every scan of a table reads all its splits. */
function tableSizes(stages: readonly SizedStage[]): ReadonlyMap<string, PlanEstimate> {
  const sizes = new Map<string, PlanEstimate>()
  for (const { fragment, splits } of stages)
    fragment?.scans.forEach(({ catalog, schema, table, columns, ofRule }, index) => {
      if (ofRule) return
      const own = splits.filter(({ scan }) => scan === index)
      const rows = knownSum(own.map((split) => split.rows))
      const bytes = knownSum(own.flatMap((split) => columns.map((column) => bytesOfColumn(split, column))))
      sizes.set(`${catalog}:${schema}:${table}`, {
        ...(rows === undefined ? {} : { rows }),
        ...(bytes === undefined ? {} : { bytes }),
      })
    })
  return sizes
}

function estimateOf(
  { name, details, layout }: PlanNode,
  inputs: readonly PlanEstimate[],
  tables: ReadonlyMap<string, PlanEstimate>,
): PlanEstimate {
  const [input = {}] = inputs
  const rows = (count: number | undefined): PlanEstimate => (count === undefined ? {} : { rows: count })
  switch (name) {
    case 'TableScan':
    case 'ScanProject':
      return tables.get(details['table'] ?? '') ?? {}
    case 'Values':
      return rows(Number(details['rows']))
    case 'Output':
    case 'Sort':
      return input
    case 'Project':
    case 'Window':
      return rows(input.rows)
    case 'TopN':
    case 'Limit':
      return rows(atMost(details['count'], input.rows))
    case 'Aggregate':
      // An aggregation without keys and without columns is the DISTINCT of a UNION.
      return rows('keys' in details || layout.length === 0 ? undefined : 1)
    case 'CrossJoin':
      return rows(inputs.reduce<number | undefined>((product, one) => times(product, one.rows), 1))
    case 'Union':
      return rows(knownSum(inputs.map((one) => one.rows)))
    case 'Sample':
      return rows(times(input.rows, Number(details['ratio'])))
    default:
      return {}
  }
}

function times(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a * b
}

/** A count that is unknown before the run, such as `ALL`, limits nothing. */
function atMost(count: string | undefined, rows: number | undefined): number | undefined {
  const bound = count !== undefined && /^\d+$/.test(count) ? Number(count) : Infinity
  const least = Math.min(bound, rows ?? Infinity)
  return least === Infinity ? undefined : least
}

/** The estimate in Trino's text form; unknown numbers are `?`. */
export function estimateText({ rows, bytes }: PlanEstimate): string {
  const count = rows === undefined ? '?' : String(Math.round(rows))
  return `Estimates: {rows: ${count} (${bytes === undefined ? '?' : formatSize(bytes)}), cpu: ?, memory: ?, network: ?}`
}

/** The estimate in Trino's JSON form, where an unknown number is a text. */
export function estimateJson({ rows, bytes }: PlanEstimate): Record<string, number | 'NaN'> {
  return {
    outputRowCount: rows ?? 'NaN',
    outputSizeInBytes: bytes ?? 'NaN',
    cpuCost: 'NaN',
    memoryCost: 'NaN',
    networkCost: 'NaN',
  }
}
