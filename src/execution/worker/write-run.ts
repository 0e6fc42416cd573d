import type { Catalogs } from '../../connectors/spi/catalogs.ts'
import { changedRows, type WrittenFile, type WrittenRows } from '../../connectors/spi/table-writer.ts'
import { EngineError } from '../../shared/engine-error.ts'
import type { EnginePool } from '../engine/engine.ts'
import type { BatchFigures } from './batch-figures.ts'
import { batchFigures } from './measured-batch.ts'
import { batchStatement, measured, type BatchLimits, type BatchRunInput } from './batch-run.ts'
import { batchQuery, verifyBatch } from './batch-query.ts'
import type { DiskSpace } from './disk-space.ts'
import { diskFull, isDiskFull, watchDisk } from './disk-watch.ts'
import { EngineAttempts } from './engine-attempts.ts'

/** The files that a batch wrote: durable, but part of no table yet. */
export interface Written {
  readonly rows: number
  readonly files: readonly WrittenFile[]
}

/** A running batch that writes its rows. */
export interface WriteRun {
  /**
   * Rejects with an EngineError, or with EngineLost when it cannot be tried again here; then no files are left behind.
   */
  readonly done: Promise<{ readonly figures: BatchFigures; readonly written: Written }>
  cancel(): void
}

export interface WriteRunDeps {
  readonly engines: Pick<EnginePool, 'run' | 'stagedIn'>
  readonly catalogs: Catalogs
  readonly limits: Pick<BatchLimits, 'attempts'>
  readonly now: () => number
  readonly diskSpace: (folder: string) => Promise<DiskSpace>
}

/**
 * Runs a batch that writes: the engine writes files into an attempt's own folder. No query reads them before the write
 * is committed.
 */
export function runWrite(deps: WriteRunDeps, input: Omit<BatchRunInput, 'firstToken'>): WriteRun {
  const { fragment, batch } = input
  const { target } = fragment.write!
  const attempts = new EngineAttempts(deps.engines, deps.limits.attempts)

  async function attemptOnce(writer: WrittenRows, attempt: string) {
    const folder = await writer.openAttempt(target, attempt).catch((error: unknown) => {
      throw isDiskFull(error) ? diskFull() : error
    })
    const { stagedIn } = deps.engines
    const disk = watchDisk(stagedIn === undefined ? [folder] : [folder, stagedIn], deps.diskSpace, () =>
      attempts.stop(),
    )
    try {
      const query = await batchQuery(fragment, batch, deps.catalogs)
      const verify = (): Promise<void> => verifyBatch(fragment, batch, deps.catalogs)
      await verify()
      await disk.check()
      attempts.checkCanceled()
      const running = attempts.run(batchStatement(input, query, { kind: 'parquet', folder }))
      const result = await running.catch((error) => attempts.failed(error, verify))
      await verify()
      attempts.checkCanceled()
      const sealed = await writer.sealAttempt(target, attempt, result.files ?? [])
      const rows = changedRows(sealed)
      const figures = batchFigures({
        ...measured(input, result),
        endedAt: deps.now(),
        blockedMs: 0,
        outputPositions: rows,
        outputBytes: sealed.reduce((sum, { bytes }) => sum + bytes, 0),
      })
      return { figures, written: { rows, files: sealed } }
    } catch (error) {
      // The files of the attempt are not used; a sweep removes files that cannot be removed now.
      await writer.dropAttempt(target, attempt).catch(() => undefined)
      throw disk.isFull() || isDiskFull(error) ? diskFull() : error
    } finally {
      disk.stop()
    }
  }

  return {
    done: attempts.repeat((attempt) =>
      attemptOnce(writerOf(deps.catalogs, target.catalog), `${input.taskId}.${attempt}`),
    ),
    cancel: () => attempts.cancel(),
  }
}

function writerOf(catalogs: Catalogs, catalog: string): WrittenRows {
  const writer = catalogs.get(catalog)?.writer
  if (!writer) throw new EngineError('CATALOG_NOT_AVAILABLE', `Catalog '${catalog}' cannot be written on the worker`)
  return writer
}
