import type { TaskId } from '../../shared/ids.ts'
import type { RowDigester } from '../../shared/row-digest.ts'
import type { Catalogs } from '../../connectors/spi/catalogs.ts'
import type { Fragment } from '../api/fragment.ts'
import type { EngineQuery } from '../engine/engine-query.ts'
import {
  EngineLost,
  type EngineBounds,
  type EngineOutput,
  type EnginePool,
  type EngineResult,
  type EngineStatement,
  type EngineUsage,
} from '../engine/engine.ts'
import type { BatchFigures } from './batch-figures.ts'
import { batchFigures, type MeasuredBatch } from './measured-batch.ts'
import { batchQuery, verifyBatch } from './batch-query.ts'
import type { Batch } from './batches.ts'
import { EngineAttempts } from './engine-attempts.ts'
import { createPageWriter, type PageSink } from './page-writer.ts'
import { QuipuError } from '../../shared/quipu-error.ts'

export interface BatchRunDeps {
  readonly engines: Pick<EnginePool, 'run'>
  readonly catalogs: Catalogs
  readonly sink: PageSink
  readonly digester: RowDigester
  readonly limits: BatchLimits
  readonly now: () => number
}

export interface BatchLimits {
  readonly pageBytes: number
  readonly pageMaxBytes: number
  /** Results up to this size come in the engine's own frame. */
  readonly inlineBytes: number
  /** Attempts at a batch when its engine was lost before any of its pages was listed. */
  readonly attempts: number
  readonly flushMs: number
  readonly holdMs: number
}

export interface BatchRunInput {
  readonly taskId: TaskId
  readonly fragment: Fragment
  readonly batch: Batch
  readonly profile: boolean
  /** Whether pages come with digests. */
  readonly digests: boolean
  readonly remainingMillis: number | undefined
  readonly bounds: EngineBounds | undefined
  readonly onUsage: (usage: EngineUsage) => void
  /** Token of the batch's first page. */
  readonly firstToken: number
  /** When the batch could have started, wall clock milliseconds. */
  readonly readyAt: number
}

/** A batch while it runs. */
export interface BatchRun {
  /** Rejects with an EngineError, or with EngineLost when it cannot be tried again here. */
  readonly done: Promise<BatchFigures>
  cancel(): void
}

/** Scans without order that give more rows are streamed from the start: their result would only overflow the frame. */
const INLINE_MAX_ROWS = 1000

export function runBatch(deps: BatchRunDeps, input: BatchRunInput): BatchRun {
  const { fragment, batch } = input
  const attempts = new EngineAttempts(deps.engines, deps.limits.attempts)

  async function attemptOnce(query: EngineQuery, kind: 'inline' | 'stream'): Promise<BatchFigures | 'overflow'> {
    // A streaming fragment has no order, and several batches.
    const digests = input.digests ? { by: deps.digester, chained: !fragment.streams } : undefined
    const options = { batch: batch.batch, firstToken: input.firstToken, digests, ...deps.limits }
    const output: EngineOutput =
      kind === 'inline' ? { kind, maxBytes: deps.limits.inlineBytes } : { kind, onRows: (lines) => writer.add(lines) }
    // Checking large text files takes long, and other batches may wait for the same check.
    const verify = (): Promise<void> => attempts.unlessCanceled(verifyBatch(fragment, batch, deps.catalogs))
    // The engine reads while the files are checked.
    const running = attempts.run(batchStatement(input, query, output))
    const unchanged = verify()
    unchanged.catch(() => attempts.stop())
    const writer = createPageWriter(listingAfter(unchanged, deps.sink), options)
    try {
      // If the files have changed since they were listed, the engine's result is not an answer, nor is its error.
      const result = await running.catch((error) => attempts.failed(error, verify, unchanged))
      await unchanged
      if (result.overflow) return 'overflow'
      const verified = verify()
      // The writer throws its failure, unless the writer failed before.
      verified.catch(() => undefined)
      if (result.inline) writer.addWhole(result.inline, result.rows)
      const written = await writer.finish(verified)
      return batchFigures({
        endedAt: deps.now(),
        blockedMs: writer.blockedMs(),
        outputPositions: written.rows,
        outputBytes: written.bytes,
        ...measured(input, result),
      })
    } catch (error) {
      await writer.abandon()
      if (writer.listed() > 0 && error instanceof EngineLost) throw new BatchPinned(error)
      throw error
    }
  }

  let kind = outputKind(fragment)
  return {
    done: attempts.repeat(async () => {
      for (;;) {
        const query = await batchQuery(fragment, batch, deps.catalogs)
        attempts.checkCanceled()
        const outcome = await attemptOnce(query, kind)
        if (outcome !== 'overflow') return outcome
        kind = 'stream'
      }
    }),
    cancel: () => attempts.cancel(),
  }
}

/** A sink that lists no page until the files are known to be unchanged, whatever the engine has read by then. */
function listingAfter(unchanged: Promise<void>, sink: PageSink): PageSink {
  return {
    ...sink,
    async list(page) {
      await unchanged
      await sink.list(page)
    },
  }
}

/** The engine statement of a batch. */
export function batchStatement(
  { taskId, fragment, batch, profile, remainingMillis, bounds, onUsage }: Omit<BatchRunInput, 'firstToken' | 'digests'>,
  query: EngineQuery,
  output: EngineOutput,
): EngineStatement {
  return {
    id: `${taskId} batch ${batch.batch}`,
    query,
    placement: fragment.estimate.small ? 'shared' : 'dedicated',
    risky: fragment.risky,
    profile,
    // DuckDB binds scans of files again at each execution: keeping the statement would save nothing.
    cachePrepared: false,
    output,
    onUsage,
    ...(remainingMillis !== undefined && { remainingMillis }),
    ...(bounds && { bounds }),
  }
}

/** The engine's figures for a batch that ran well. */
export function measured(
  { fragment, batch, readyAt }: Omit<BatchRunInput, 'firstToken'>,
  result: EngineResult,
): Pick<MeasuredBatch, 'result' | 'fragment' | 'batch' | 'queuedMs'> {
  return { result, fragment, batch, queuedMs: Math.max(0, result.startedAt - readyAt) }
}

/** The engine was lost after pages of the batch were listed: only the coordinator knows whether they are published. */
export class BatchPinned extends QuipuError {
  readonly retry = 'never'
  constructor(cause: EngineLost) {
    super(cause.message, { cause })
  }
}

function outputKind({ estimate, streams }: Fragment): 'inline' | 'stream' {
  if (!estimate.small) return 'stream'
  return !streams || (estimate.rows ?? Infinity) <= INLINE_MAX_ROWS ? 'inline' : 'stream'
}
