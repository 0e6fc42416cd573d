import type { Catalogs } from '../../connectors/spi/catalogs.ts'
import type { ConnectorWriter, WrittenFile } from '../../connectors/spi/table-writer.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { EngineLost, type EnginePool, type EngineRun } from '../engine/engine.ts'
import { batchFigures, type BatchFigures } from './batch-figures.ts'
import type { BatchLimits, BatchRunInput } from './batch-run.ts'
import { batchQuery, verifyBatch } from './batch-query.ts'
import type { DiskSpace } from './disk-space.ts'
import { diskFull, isDiskFull, watchDisk } from './disk-watch.ts'

/** What a batch wrote: durable, and part of no table yet. */
export interface Written {
  readonly rows: number
  readonly files: readonly WrittenFile[]
}

/** A batch whose rows are written, while it runs. */
export interface WriteRun {
  /** Rejects with an EngineError, or with EngineLost when it cannot be tried again here; then nothing is left behind. */
  readonly done: Promise<{ readonly figures: BatchFigures; readonly written: Written }>
  cancel(): void
}

export interface WriteRunDeps {
  readonly engines: Pick<EnginePool, 'run'>
  readonly catalogs: Catalogs
  readonly limits: Pick<BatchLimits, 'attempts'>
  readonly now: () => number
  readonly diskSpace: (folder: string) => Promise<DiskSpace>
}

/** The engine writes files into an attempt's own folder; nobody reads them before the query's write is committed. */
export function runWrite(deps: WriteRunDeps, input: Omit<BatchRunInput, 'firstToken'>): WriteRun {
  const { fragment, batch } = input
  const write = fragment.write!
  let current: EngineRun | undefined
  let canceled = false

  function checkCanceled(): void {
    if (canceled) throw new EngineError('USER_CANCELED', 'Query was canceled')
  }

  async function attemptOnce(writer: ConnectorWriter, attempt: string) {
    const folder = await writer.openAttempt(write.target, attempt).catch((error: unknown) => {
      throw isDiskFull(error) ? diskFull() : error
    })
    const disk = watchDisk(folder, deps.diskSpace, () => current?.cancel())
    try {
      const query = await batchQuery(fragment, batch, deps.catalogs)
      await disk.check()
      checkCanceled()
      current = deps.engines.run({
        id: `${input.taskId} batch ${batch.batch}`,
        query,
        placement: fragment.estimate.small ? 'shared' : 'dedicated',
        risky: fragment.risky,
        profile: input.profile,
        cachePrepared: false,
        output: { kind: 'parquet', folder },
        ...(input.remainingMillis !== undefined && { remainingMillis: input.remainingMillis }),
      })
      const result = await current.done
      await verifyBatch(fragment, batch, deps.catalogs)
      checkCanceled()
      const { rows, files = [] } = result
      const sealed = await writer.sealAttempt(write.target, attempt, files)
      const figures = batchFigures({
        result,
        fragment,
        batch,
        queuedMs: Math.max(0, result.startedAt - input.readyAt),
        endedAt: deps.now(),
        blockedMs: 0,
        outputPositions: rows,
        outputBytes: sealed.reduce((sum, { bytes }) => sum + bytes, 0),
      })
      return { figures, written: { rows, files: sealed } }
    } catch (error) {
      // What it leaves is nobody's; a sweep takes what cannot be removed now.
      await writer.dropAttempt(write.target, attempt).catch(() => undefined)
      throw disk.isFull() || isDiskFull(error) ? diskFull() : error
    } finally {
      disk.stop()
      current = undefined
    }
  }

  async function run(): Promise<{ readonly figures: BatchFigures; readonly written: Written }> {
    const writer = writerOf(deps.catalogs, write.target.catalog)
    for (let attempt = 1; ; attempt++) {
      checkCanceled()
      try {
        return await attemptOnce(writer, `${input.taskId}.${attempt}`)
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

function writerOf(catalogs: Catalogs, catalog: string): ConnectorWriter {
  const writer = catalogs.get(catalog)?.writer
  if (!writer) throw new EngineError('CATALOG_NOT_AVAILABLE', `Catalog '${catalog}' cannot be written on the worker`)
  return writer
}
