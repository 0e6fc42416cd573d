import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { z } from 'zod'
import { ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'
import { HIGHEST_EPOCH } from '../api/task.ts'
import { hasCode } from '../../shared/node-error.ts'
import { parseJson } from '../../shared/parse-json.ts'

/** `stale`: a coordinator of that log had a higher epoch; `implausible`: no log reaches that epoch so soon. */
export type EpochVerdict = 'accepted' | 'stale' | 'implausible'

/**
 * The highest epoch of each log that a coordinator has sent to this worker; kept on disk, so that it survives a
 * restart. Epochs of two logs cannot be compared: a worker can be moved to another log.
 */
export interface EpochGuard {
  /** @param logId absent from an older coordinator, which speaks for the log heard last */
  accept(epoch: number, logId?: string): EpochVerdict
  /** The epoch of the log heard last; 0 before the first. */
  seen(): number
}

/**
 * The largest plausible step: a coordinator that restarts again and again claims one epoch each time and needs months
 * for it.
 */
const LARGEST_STEP = 1_000_000
/** A worker keeps the epochs of the logs that it served last. */
const MOST_LOGS = 16
/** The id of the log in a file that names no log. */
const UNNAMED = ''

/** In the order in which they were heard, the last one last; an older file holds only the epoch. */
const fileSchema = z.union([
  z.object({ logs: z.array(z.object({ logId: z.string(), epoch: z.number().int().min(0).max(HIGHEST_EPOCH) })) }),
  z.number().transform((epoch) => ({
    // An epoch that no coordinator can have is ignored.
    logs: Number.isSafeInteger(epoch) && epoch > 0 && epoch <= HIGHEST_EPOCH ? [{ logId: UNNAMED, epoch }] : [],
  })),
])

export function createEpochGuard(file: string): EpochGuard {
  mkdirSync(dirname(file), { recursive: true })
  const logs = new Map(readEpochs(file).map(({ logId, epoch }) => [logId, epoch]))
  let heardLast = [...logs.keys()].at(-1) ?? UNNAMED

  return {
    accept(epoch, logId = heardLast) {
      // An epoch from before logs had names belongs to the first log that is named.
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
 * The content of a worker's file of epochs, the log heard last at the end; empty without a file.
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
  // A loss of power can leave an empty file.
  if (text === '') return []
  const parsed = fileSchema.safeParse(parseJson(text))
  if (parsed.success) return parsed.data.logs
  throw new ExitError(exitCodes.configuration, `${file} holds no readable epochs: see quipu reset-epoch --help`)
}

/** Writes the file; it is on disk when this returns. */
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
