import type { Fragment, Split } from '../execution/api/fragment.ts'
import type { RenderedQuery, ResultColumn } from '../sql/front-end.ts'
import type { StagePlan } from './stage-plan.ts'

/** What is known about a query's input when it is split into stages. */
export interface QueryInput {
  /** The splits of all scans. */
  readonly splits: readonly Split[]
  /** Whether the rows of every scan live in the coordinator (information_schema, system tables). */
  readonly coordinatorOnly: boolean
}

/** Limits of statements that may share an engine: compressed input in bytes, and rows; both must be known. */
const SMALL_BYTES = 16 * 1024 * 1024
const SMALL_ROWS = 1_000_000

/**
 * Splits a rendered query into stages. With one worker, stage 1 does all the work and stage 0 relays. A query that
 * needs no worker is only stage 0.
 */
export function planStages(
  query: RenderedQuery,
  columns: readonly ResultColumn[],
  input: QueryInput,
): readonly StagePlan[] {
  const fragment = toFragment(query, columns, input.splits)
  const onCoordinator = query.simple && !query.risky && (query.scans.length === 0 || input.coordinatorOnly)
  const splits = withoutFiguresOfRules(fragment, input.splits)
  if (onCoordinator) return [{ id: 0, fragment, distribution: 'coordinator', inputs: [], splits }]
  return onWorker(fragment, splits)
}

/** Splits a query whose rows are written; it always runs on a worker. Stage 0 commits what stage 1 wrote. */
export function planWriteStages(
  query: RenderedQuery,
  columns: readonly ResultColumn[],
  input: QueryInput,
  write: NonNullable<Fragment['write']>,
): readonly StagePlan[] {
  const fragment = toFragment(query, columns, input.splits)
  return onWorker({ ...fragment, write }, withoutFiguresOfRules(fragment, input.splits))
}

/**
 * Removes rows and bytes of tables that only access rules read: they must appear in no plan and in no figure of a task.
 */
function withoutFiguresOfRules({ scans }: Fragment, splits: readonly Split[]): readonly Split[] {
  return splits.map((split) => {
    if (!scans[split.scan]?.ofRule) return split
    const { scan, catalog, data } = split
    return { scan, catalog, data }
  })
}

function onWorker(fragment: Fragment, splits: readonly Split[]): readonly StagePlan[] {
  return [
    { id: 0, distribution: 'coordinator', inputs: [1], splits: [] },
    { id: 1, fragment, distribution: 'single', inputs: [], splits },
  ]
}

function toFragment(query: RenderedQuery, columns: readonly ResultColumn[], splits: readonly Split[]): Fragment {
  let bytes = 0
  let rows = 0
  let known = true
  for (const split of splits) {
    if (split.bytes === undefined || split.rows === undefined) known = false
    bytes += split.bytes ?? 0
    rows += split.rows ?? 0
  }
  return {
    sql: query.sql,
    scans: query.scans.map(({ catalog, schema, table, handle, columns: read, ofRule }) => ({
      catalog,
      schema,
      table,
      handle: { ...handle },
      columns: [...read],
      ...(ofRule && { ofRule }),
    })),
    output: columns.map(({ name, type, typeSignature }, index) => ({
      name,
      type,
      typeSignature,
      wire: query.wire[index] ?? `"c${index}"`,
    })),
    streams: query.streams,
    ordered: query.ordered,
    estimate: {
      small: query.simple && !query.risky && known && bytes <= SMALL_BYTES && rows <= SMALL_ROWS,
      ...(known ? { rows, bytes } : {}),
    },
    risky: query.risky,
  }
}
