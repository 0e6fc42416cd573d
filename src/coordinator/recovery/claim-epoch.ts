import { Fenced, type WriterClaim, type LogEnd } from '../../events/event-log.ts'
import { ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'
import type { SystemJournal } from '../system/system-journal.ts'

export interface Claimed {
  readonly epoch: number
  readonly writer: string
}

/**
 * Becomes the writer.
 * @param as the address under which this coordinator is reached; it goes into EpochStarted
 * @returns undefined when another process claimed first
 */
export async function claimEpoch(
  log: Pick<WriterClaim, 'claim'> & LogEnd,
  as: { readonly address: string; readonly version: string },
): Promise<Claimed | undefined> {
  try {
    const epoch = await log.claim(as)
    const tip = await log.tip()
    return { epoch, writer: tip.at[0]?.state.writer ?? '' }
  } catch (error) {
    if (error instanceof Fenced) return undefined
    throw error
  }
}

/**
 * Records that the writer stops on purpose, so that followers need not wait for its silence. Nothing that counts is
 * appended after it.
 */
export async function handOver(journal: SystemJournal, claimed: Claimed, waitMs: number): Promise<void> {
  const recorded = journal.record('EpochEnded', { ...claimed, reason: 'drained' }).then(
    () => {},
    // Fenced, or the log is unreachable: then the next writer finds out by the silence.
    () => {},
  )
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, waitMs)))
  await Promise.race([recorded, late])
  clearTimeout(timer)
}

/** The error of a coordinator that must not follow, when another one writes. */
export function anotherWrites(address: string): ExitError {
  return new ExitError(
    exitCodes.dependency,
    `Another coordinator is writing this event log at ${address}: stop it first, or start this one with --standby`,
  )
}
