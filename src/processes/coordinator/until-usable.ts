import { setTimeout as sleep } from 'node:timers/promises'
import { MisconfiguredLog } from '../../events/event-log.ts'
import { MigrationError } from '../../events/postgres/migrate.ts'
import { ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'
import type { Need, StartNeeds } from './start-needs.ts'

export interface Patience {
  /**
   * Whether the start waits for dependencies: successors and stand-bys wait. Any other first start exits and reports
   * what is missing.
   */
  readonly waits: boolean
  readonly needs: Pick<StartNeeds, 'during' | 'failed'>
  /** Called once for each dependency that the start waits for, with the first error. */
  readonly onWait: (need: Need, error: Error) => void
  /** Called once when that dependency is there. */
  readonly onThere?: (need: Need) => void
  /** @default of the clock */
  readonly pause?: (milliseconds: number) => Promise<unknown>
}

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1000
const nameOf: Readonly<Record<Need, string>> = { log: 'the event log', database: 'Postgres' }

/**
 * Opens a dependency of the start. If it is only missing and this process waits, retries until it is there.
 * @param without the start continues without it, where this process would wait
 * @returns false if it is missing and the start continues without it
 * @throws ExitError 64 or 69 with one line for what is wrong or missing
 */
export async function untilUsable(
  need: Need,
  open: () => Promise<unknown>,
  { waits, needs, onWait, onThere, pause = sleep }: Patience,
  { without = false }: { readonly without?: boolean } = {},
): Promise<boolean> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    try {
      await needs.during(need, open)
      if (pauseMs > FIRST_PAUSE_MS) onThere?.(need)
      return true
    } catch (error) {
      const wrong = error instanceof MigrationError || error instanceof MisconfiguredLog
      if (wrong || !waits)
        throw new ExitError(
          wrong ? exitCodes.configuration : exitCodes.dependency,
          `Cannot use ${nameOf[need]}: ${error instanceof Error ? error.message : String(error)}`,
        )
      needs.failed(need)
      if (without) return false
      if (pauseMs === FIRST_PAUSE_MS) onWait(need, error as Error)
      await pause(pauseMs)
    }
  }
}
