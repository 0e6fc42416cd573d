import type { Fragment, Split } from '../execution/api/fragment.ts'
import { ROOT_STAGE } from '../shared/ids.ts'
import type { ResultColumn } from '../sql/front-end.ts'
import type { RenderedQuery } from './planned-statement.ts'
import { makePlan, type QueryPlan, type Stage } from './query-plan.ts'

/** The input of a query that is planned. */
export interface QueryInput {
  /** The splits of all scans. */
  readonly splits: readonly Split[]
  /** Whether only the coordinator has the rows of every scan (information_schema, system tables). */
  readonly coordinatorOnly: boolean
}

/** Limits of statements that may share an engine: compressed input in bytes, and rows; both must be known. */
const SMALL_BYTES = 16 * 1024 * 1024
const SMALL_ROWS = 1_000_000

/**
 * Plans a query whose rows are the result. A query that needs no worker is stage 0 alone. Otherwise stage 1 does all
 * the work on one worker, and stage 0 relays its pages.
 */
export function planQuery(query: RenderedQuery, columns: readonly ResultColumn[], input: QueryInput): QueryPlan {
  const onCoordinator = query.simple && !query.risky && (query.scans.length === 0 || input.coordinatorOnly)
  const work = toWork(query, columns, input)
  if (!onCoordinator) return onWorker(work, 'client')
  return makePlan('coordinator', [{ id: ROOT_STAGE, distribution: 'coordinator', inputs: [], ...work }], 'client')
}

/** Plans a query for EXPLAIN ANALYZE, which needs only the figures. It always runs on a worker. */
export function planForFigures(query: RenderedQuery, columns: readonly ResultColumn[], input: QueryInput): QueryPlan {
  return onWorker(toWork({ ...query, simple: false }, columns, input), 'none')
}

/** Plans a query whose rows are written; it always runs on a worker. Stage 0 commits the files of stage 1. */
export function planWrite(
  query: RenderedQuery,
  columns: readonly ResultColumn[],
  input: QueryInput,
  write: NonNullable<Fragment['write']>,
): QueryPlan {
  const work = toWork(query, columns, input)
  return onWorker({ ...work, fragment: { ...work.fragment, write } }, 'table')
}

/** The fields of a stage that computes the whole query. */
type Work = Required<Pick<Stage, 'fragment' | 'splits' | 'outline'>>

function toWork(query: RenderedQuery, columns: readonly ResultColumn[], { splits }: QueryInput): Work {
  const fragment = toFragment(query, columns, splits)
  return { fragment, splits: withoutFiguresOfRules(fragment, splits), outline: query.outline }
}

function onWorker(work: Work, result: 'client' | 'table' | 'none'): QueryPlan {
  const relay = { id: ROOT_STAGE, distribution: 'coordinator' as const, inputs: [1], splits: [] }
  return makePlan('local', [relay, { id: 1, distribution: 'single', inputs: [], ...work }], result)
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
    scans: query.scans.map(({ catalog, schema, table, handle, columns: read, ofRule, rowIds }) => ({
      catalog,
      schema,
      table,
      handle: { ...handle },
      columns: [...read],
      ...(ofRule && { ofRule }),
      ...(rowIds && { rowIds }),
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
