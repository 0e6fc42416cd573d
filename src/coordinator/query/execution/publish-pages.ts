import type { PageOffset, ResultPage } from '../../../events/event-log.ts'
import type { TaskStats } from '../../../execution/api/task.ts'
import { ROOT_STAGE, taskId as makeTaskId, type TaskId } from '../../../shared/ids.ts'
import type { QueryEventOf } from '../stream/events.ts'
import type { QueryCommand } from '../stream/decider.ts'
import type { QueryStep } from '../stream/query-aggregate.ts'
import type { ExecutionDeps } from './execution-deps.ts'
import type { RunContext } from './run-context.ts'

type Published = QueryEventOf<'ResultPagesPublished'>['data']
type PublishedPage = Published['pages'][number]

/** A page on its way into the result. */
export interface UnpublishedPage extends Pick<PublishedPage, 'rows' | 'sha256' | 'taskToken' | 'digest'> {
  /** The number of its bytes. */
  readonly bytes: number
  /** The bytes, to be kept beside the log; absent for a page that stays on its worker. */
  readonly data?: Buffer
}

/** The command that publishes pages, with the pages that its append writes beside the log. */
export interface PreparedPages {
  readonly command: Extract<QueryCommand, { type: 'PublishPages' }>
  readonly beside: readonly ResultPage[]
}

/**
 * Keeps small pages in memory and beside the log, and makes the command that publishes all pages. No page is part of
 * the result before this command is recorded.
 */
export async function publishPages(
  { log }: Pick<ExecutionDeps, 'log'>,
  run: RunContext,
  group: Omit<Published, 'pages'> & { readonly pages: readonly UnpublishedPage[] },
): Promise<PreparedPages> {
  const small = group.pages.flatMap(({ data }, index) =>
    data ? [{ token: group.firstToken + index, bytes: data }] : [],
  )
  for (const { token, bytes } of small) run.pages.set(token, bytes)
  const { offsets, beside } = small.length > 0 ? await log.keepPages(run.queryId, small) : { offsets: [], beside: [] }
  const offsetOf = new Map<number, PageOffset | undefined>(small.map(({ token }, index) => [token, offsets[index]]))
  const pages = group.pages.map(({ rows, bytes, sha256, taskToken, digest, data }, index): PublishedPage => {
    const offset = offsetOf.get(group.firstToken + index)
    const kept = data ? 'log' : 'worker'
    return { rows, bytes, sha256, kept, ...(offset && { place: offset }), taskToken, ...(digest && { digest }) }
  })
  return { command: { type: 'PublishPages', data: { ...group, pages } }, beside }
}

/** The whole result of a statement, made in this coordinator. */
export interface OwnResult {
  readonly pages: readonly UnpublishedPage[]
  /** The figures of the root's task. */
  readonly stats: TaskStats
}

/** Publishes a result of the root's task, and ends the query in the same append. @param before steps to record first */
export async function publishOwnResult(
  deps: Pick<ExecutionDeps, 'log' | 'nodeId' | 'selfUrl'>,
  run: RunContext,
  { pages, stats }: OwnResult,
  { before = [], finish = run.finish() }: { readonly before?: readonly QueryStep[]; readonly finish?: QueryStep } = {},
): Promise<void> {
  const taskId = rootTask(run)
  const group = { taskId, batch: 0, firstToken: 0, pages, lastOfBatch: true, lastOfResult: true }
  const { command, beside } = await publishPages(deps, run, group)
  const { nodeId, selfUrl: nodeUrl } = deps
  const end: QueryCommand = { type: 'FinishTask', data: { taskId, stage: ROOT_STAGE, nodeId, nodeUrl, stats } }
  await run.record([...before, end, command, finish], beside)
}

/** The id of the root's task. The root has one task, because it runs in the coordinator. */
export function rootTask({ queryId }: Pick<RunContext, 'queryId'>): TaskId {
  return makeTaskId(queryId, ROOT_STAGE, 0)
}
