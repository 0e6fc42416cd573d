import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { z } from 'zod'
import { ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'
import { HIGHEST_EPOCH } from '../api/task.ts'
import { hasCode } from '../../shared/node-error.ts'
import { parseJson } from '../../shared/parse-json.ts'

/** `stale`: a coordinator of that log with a higher epoch was heard; `implausible`: no log comes so far so fast. */
export type EpochVerdict = 'accepted' | 'stale' | 'implausible'

/**
 * The highest epoch of each log that this worker has heard of a coordinator; kept on disk, so that a restart forgets
 * nothing. Epochs of two logs say nothing of each other: a worker that is moved to another log is not stuck.
 */
export interface EpochGuard {
  /** @param logId absent from a coordinator of before, which speaks for the log heard last */
  accept(epoch: number, logId?: string): EpochVerdict
  /** Of the log heard last; 0 before the first. */
  seen(): number
}

/** A coordinator that starts again and again claims one epoch each time: so many take months. */
const LARGEST_STEP = 1_000_000
/** A worker that is moved about keeps those it served last. */
const MOST_LOGS = 16
/** Of a file that names no log. */
const UNNAMED = ''

/** In the order of their hearing, the last one last; a file of before holds the epoch alone. */
const fileSchema = z.union([
  z.object({ logs: z.array(z.object({ logId: z.string(), epoch: z.number().int().min(0).max(HIGHEST_EPOCH) })) }),
  z.number().transform((epoch) => ({
    // One that no coordinator can have had was none.
    logs: Number.isSafeInteger(epoch) && epoch > 0 && epoch <= HIGHEST_EPOCH ? [{ logId: UNNAMED, epoch }] : [],
  })),
])

export function createEpochGuard(file: string): EpochGuard {
  mkdirSync(dirname(file), { recursive: true })
  const logs = new Map(readEpochs(file).map(({ logId, epoch }) => [logId, epoch]))
  let heardLast = [...logs.keys()].at(-1) ?? UNNAMED

  return {
    accept(epoch, logId = heardLast) {
      // What was heard before logs were named was of the first that is.
      const before = logs.get(logId) ?? logs.get(UNNAMED)
      if (epoch > HIGHEST_EPOCH || (before !== undefined && epoch > before + LARGEST_STEP)) return 'implausible'
      if (before !== undefined && epoch < before) return 'stale'
      if (epoch === logs.get(logId)) {
        heardLast = logId
        return 'accepted'
      }
      const next = new Map(logs)
      next.delete(UNNAMED)
      next.delete(logId)
      next.set(logId, epoch)
      const kept = [...next].slice(-MOST_LOGS)
      write(
        file,
        JSON.stringify({ logs: kept.map(([id, highest]) => ({ logId: id, epoch: highest })) } satisfies z.output<
          typeof fileSchema
        >),
      )
      logs.clear()
      for (const [id, highest] of kept) logs.set(id, highest)
      heardLast = logId
      return 'accepted'
    },
    seen: () => logs.get(heardLast) ?? 0,
  }
}

/**
 * What a worker's file of epochs holds, the log heard last at the end; nothing without a file.
 * @throws ExitError 64 when it holds anything else
 */
export function readEpochs(file: string): readonly { readonly logId: string; readonly epoch: number }[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8').trim()
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  }
  // Left so by a machine that lost its power.
  if (text === '') return []
  const parsed = fileSchema.safeParse(parseJson(text))
  if (parsed.success) return parsed.data.logs
  throw new ExitError(exitCodes.configuration, `${file} holds no epochs: see quipu reset-epoch --help`)
}

/** On disk when this returns. */
function write(file: string, text: string): void {
  const fresh = `${file}.tmp`
  const handle = openSync(fresh, 'w', 0o600)
  try {
    writeSync(handle, text)
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
  renameSync(fresh, file)
}
