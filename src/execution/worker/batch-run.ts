import type { Catalogs } from '../../connectors/spi/catalogs.ts'
import { EngineError } from '../../shared/engine-error.ts'
import type { Fragment } from '../api/fragment.ts'
import type { EngineQuery } from '../engine/engine-query.ts'
import { EngineLost, type EnginePool, type EngineRun, type EngineStatement } from '../engine/engine.ts'
import { batchFigures, type BatchFigures } from './batch-figures.ts'
import { batchQuery, verifyBatch } from './batch-query.ts'
import type { Batch } from './batches.ts'
import { createPageWriter, type PageSink, type PageWriter } from './page-writer.ts'

export interface BatchRunDeps {
  readonly engines: Pick<EnginePool, 'run'>
  readonly catalogs: Catalogs
  readonly sink: PageSink
  readonly limits: BatchLimits
  readonly now: () => number
}

export interface BatchLimits {
  readonly pageBytes: number
  readonly pageMaxBytes: number
  /** Results up to this come in the engine's own frame. */
  readonly inlineBytes: number
  /** Tries of a batch whose engine was lost before any of its pages was listed. */
  readonly attempts: number
  readonly flushMs: number
  readonly holdMs: number
}

export interface BatchRunInput {
  readonly taskId: string
  readonly fragment: Fragment
  readonly batch: Batch
  readonly profile: boolean
  readonly remainingMillis: number | undefined
  /** Token of the batch's first page. */
  readonly firstToken: number
  /** When the batch could have run, wall clock milliseconds. */
  readonly readyAt: number
}

/** A batch while it runs. */
export interface BatchRun {
  /** Rejects with an EngineError, or with EngineLost when it cannot be tried again here. */
  readonly done: Promise<BatchFigures>
  cancel(): void
}

/** Scans without order that give many rows are streamed at once: their result would only overflow the frame. */
const INLINE_MAX_ROWS = 1000

export function runBatch(deps: BatchRunDeps, input: BatchRunInput): BatchRun {
  let current: EngineRun | undefined
  let canceled = false

  async function attemptOnce(query: EngineQuery, kind: 'inline' | 'stream'): Promise<BatchFigures | 'overflow'> {
    const { fragment, batch } = input
    const writer = createPageWriter(deps.sink, {
      ...deps.limits,
      batch: batch.batch,
      firstToken: input.firstToken,
    })
    try {
      current = deps.engines.run(statementOf(query, kind, writer))
      if (canceled) current.cancel()
      const result = await current.done
      if (result.overflow) return 'overflow'
      if (result.inline) writer.addWhole(result.inline, result.rows)
      const written = await writer.finish(() => verifyBatch(fragment, batch, deps.catalogs))
      return batchFigures({
        result,
        fragment,
        batch,
        queuedMs: Math.max(0, result.startedAt - input.readyAt),
        endedAt: deps.now(),
        blockedMs: writer.blockedMs(),
        outputPositions: written.rows,
        outputBytes: written.bytes,
      })
    } catch (error) {
      await writer.abandon()
      if (writer.listed() > 0 && error instanceof EngineLost) throw new BatchPinned(error)
      throw error
    } finally {
      current = undefined
    }
  }

  function statementOf(query: EngineQuery, kind: 'inline' | 'stream', writer: PageWriter): EngineStatement {
    const { fragment } = input
    return {
      id: `${input.taskId} batch ${input.batch.batch}`,
      query,
      placement: fragment.estimate.small ? 'shared' : 'dedicated',
      risky: fragment.risky,
      profile: input.profile,
      // DuckDB binds scans of files again at each execution: keeping the statement would save nothing.
      cachePrepared: false,
      output:
        kind === 'inline'
          ? { kind, maxBytes: deps.limits.inlineBytes }
          : { kind, onRows: (lines) => writer.add(lines) },
      ...(input.remainingMillis !== undefined && { remainingMillis: input.remainingMillis }),
    }
  }

  async function run(): Promise<BatchFigures> {
    let kind = outputKind(input.fragment)
    for (let attempt = 1; ; attempt++) {
      const query = await batchQuery(input.fragment, input.batch, deps.catalogs)
      if (canceled) throw new EngineError('USER_CANCELED', 'Query was canceled')
      try {
        const outcome = await attemptOnce(query, kind)
        if (outcome !== 'overflow') return outcome
        kind = 'stream'
      } catch (error) {
        if (!(error instanceof EngineLost) || canceled || attempt >= deps.limits.attempts) throw error
      }
    }
  }

  return {
    done: run(),
    cancel() {
      canceled = true
      current?.cancel()
    },
  }
}

/** The engine was lost after pages of the batch were listed: only the coordinator knows whether they are published. */
export class BatchPinned extends Error {
  constructor(cause: EngineLost) {
    super(cause.message, { cause })
    this.name = 'BatchPinned'
  }
}

function outputKind({ estimate, streams }: Fragment): 'inline' | 'stream' {
  if (!estimate.small) return 'stream'
  return !streams || (estimate.rows ?? Infinity) <= INLINE_MAX_ROWS ? 'inline' : 'stream'
}
