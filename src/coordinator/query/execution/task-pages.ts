import { hash } from 'node:crypto'
import type { ClosedPage, TaskStatus } from '../../../execution/api/task.ts'
import { inOnePiece } from '../../../shared/body-parts.ts'
import { COORDINATOR, ROOT_STAGE, type TaskId } from '../../../shared/ids.ts'
import { createBatchPublisher, type PublishableGroup, type PublishedBefore } from '../../scheduler/batch-publisher.ts'
import type { WorkerNode } from '../../scheduler/workers.ts'
import type { QueryAggregate, QueryStep } from '../stream/query-aggregate.ts'
import { relayTaskStats } from '../statistics/relay-stats.ts'
import { PageGone } from '../results/page-gone.ts'
import type { ExecutionDeps } from './execution-deps.ts'
import { publishPages, rootTask, type UnpublishedPage } from './publish-pages.ts'
import type { RunContext } from './run-context.ts'

/** Result pages up to this many bytes are kept beside the log. */
const DURABLE_PAGE_BYTES = 64 * 1024

type TaskPagesDeps = Pick<ExecutionDeps, 'log' | 'clock' | 'client'>

interface RelayedTask {
  readonly deps: TaskPagesDeps
  readonly run: RunContext
  readonly stage: number
  readonly streams: boolean
  readonly node: WorkerNode
  readonly taskId: TaskId
}

/** The pages of a task on their way from its worker into the result: the relay of the root. */
export class TaskPages {
  readonly #task: RelayedTask
  readonly #publisher: ReturnType<typeof createBatchPublisher>
  readonly #createdAt: number
  /** The bytes that came with the answer to the task's POST. */
  readonly #inline = new Map<number, Buffer>()
  #newest: TaskStatus | undefined
  #firstListedAt: number | undefined
  #requests = 0
  #fetchedBytes = 0
  #cpuMicros = 0

  constructor(task: RelayedTask) {
    const { deps, run, streams, taskId } = task
    this.#task = task
    this.#publisher = createBatchPublisher(
      streams,
      () => deps.clock.monotonicMs(),
      publishedBefore(run.aggregate, taskId),
    )
    this.#createdAt = deps.clock.now()
  }

  /**
   * Takes the pages and batches from a status. An older status that a newer one overtook may list pages that the newer
   * one does not.
   */
  take(status: TaskStatus, isNewest: boolean): void {
    if (isNewest) this.#newest = status
    for (const page of status.inlinePages ?? []) this.#inline.set(page.token, Buffer.from(page.data))
    if (status.pages.length > 0) this.#firstListedAt ??= this.#task.deps.clock.now()
    this.#publisher.list(status.pages, status.stats.elapsedNanos / 1e6)
    // A batch must not count as done until all its pages are known.
    if (this.#newest && !this.lacksPages())
      for (const batch of this.#newest.batchesDone) this.#publisher.batchDone(batch)
  }

  /** Whether the task has pages that this coordinator has not received. */
  lacksPages(): boolean {
    const { pagesSent = 0, bufferedPages = 0 } = this.#newest ?? {}
    return this.#publisher.hasGap || this.#publisher.firstUnknown < pagesSent + bufferedPages
  }

  /** The group that may be published now; `last` when the task has finished and no other page will come. */
  next(): { readonly group: PublishableGroup | undefined; readonly last: boolean } {
    const group = this.#publisher.next()
    const isLast = this.#newest?.state === 'FINISHED' && this.#publisher.pending === 0 && !this.lacksPages()
    return { group, last: isLast }
  }

  /** Milliseconds until a group may be published that may not be published yet. */
  waitMs(): number | undefined {
    return this.#publisher.waitMs()
  }

  /**
   * Publishes a group. The last group comes with the ends of task and relay, and with the end of the query where all
   * pages lie beside the log.
   * @param settled whether the task is no longer followed: then nothing of it may be recorded
   * @throws PageGone
   */
  async publish(group: PublishableGroup | undefined, last: boolean, settled: () => boolean): Promise<void> {
    const { deps, run, stage, node, taskId } = this.#task
    const pages: UnpublishedPage[] = []
    for (const page of group?.pages ?? []) {
      const data = page.bytes > DURABLE_PAGE_BYTES ? {} : { data: await this.#fetchSmall(page) }
      const { rows, bytes, sha256, token, digest } = page
      pages.push({ rows, bytes, sha256, taskToken: token, digest, ...data })
    }
    const { command, beside } = await publishPages(deps, run, {
      taskId,
      nodeUrl: node.url,
      batch: group?.batch ?? 0,
      firstToken: resultPages(run.aggregate),
      pages,
      lastOfBatch: group?.lastOfBatch ?? true,
      lastOfResult: last,
    })
    if (settled()) return
    if (!last || !this.#newest) return run.record([command], beside)
    const before = run.aggregate.intended
    const earlier = before.kind === 'NONE' ? [] : before.pages
    const totals = [...earlier, ...command.data.pages]
    const relay = relayTaskStats({
      sourceUri: `${node.url}/v1/task/${taskId}/results/0`,
      createdAt: this.#createdAt,
      firstListedAt: this.#firstListedAt,
      lastPublishedAt: deps.clock.now(),
      pages: totals.length,
      rows: totals.reduce((sum, page) => sum + page.rows, 0),
      bytes: totals.reduce((sum, page) => sum + page.bytes, 0),
      requestsScheduled: this.#requests,
      requestsCompleted: this.#requests,
      fetchedBytes: this.#fetchedBytes,
      cpuNanos: this.#cpuMicros * 1000,
      blockedNanos: Math.max(0, (this.#firstListedAt ?? deps.clock.now()) - this.#createdAt) * 1e6,
    })
    const commands: QueryStep[] = [
      {
        type: 'FinishTask',
        data: { taskId, stage, nodeId: node.nodeId, nodeUrl: node.url, stats: this.#newest.stats },
      },
      command,
      {
        type: 'FinishTask',
        data: {
          taskId: rootTask(run),
          stage: ROOT_STAGE,
          nodeId: COORDINATOR,
          nodeUrl: '',
          stats: relay,
        },
      },
    ]
    if (totals.every((page) => page.kept === 'log')) commands.push(run.finish())
    return run.record(commands, beside)
  }

  async #fetchSmall(page: ClosedPage): Promise<Buffer> {
    const { taskId } = this.#task
    this.#requests++
    const bytes = this.#inline.get(page.token) ?? (await this.#fetched(page))
    this.#inline.delete(page.token)
    this.#fetchedBytes += bytes.length
    const start = performance.now()
    const right = hash('sha256', bytes) === page.sha256
    this.#cpuMicros += Math.round((performance.now() - start) * 1000)
    if (!right) throw new PageGone(`Page ${page.token} of ${taskId} does not match its hash`)
    return bytes
  }

  async #fetched({ token, bytes }: ClosedPage): Promise<Buffer> {
    const { deps, node, taskId } = this.#task
    const parts = await deps.client.fetchPage(node.url, { taskId, token, bytes })
    if (!parts) throw new PageGone(`Page ${token} of ${taskId} is gone`)
    return inOnePiece(parts)
  }
}

function publishedBefore(aggregate: QueryAggregate, taskId: TaskId): PublishedBefore {
  const query = aggregate.intended
  const pages = query.kind === 'NONE' ? [] : query.pages.filter((page) => page.taskId === taskId)
  return { tokens: new Set(pages.map((page) => page.taskToken)), batches: new Set(pages.map((page) => page.batch)) }
}

function resultPages(aggregate: QueryAggregate): number {
  return aggregate.intended.kind === 'NONE' ? 0 : aggregate.intended.pages.length
}
