import type { Clock } from '../../shared/clock.ts'
import type { Logger } from '../../telemetry/logger.ts'

/** How often the same failure is logged again, milliseconds. */
const AGAIN_MS = 60_000
/** How many different failures are remembered. */
const MOST_KNOWN = 100

/**
 * Logs failures of an event log. An outage makes several equal failures a second: the first is logged, then one a
 * minute, with the number of those between.
 */
export function createTroubleLines(
  logger: Pick<Logger, 'warn'>,
  clock: Pick<Clock, 'monotonicMs'>,
): (error: Error) => void {
  const known = new Map<string, { at: number; unsaid: number }>()
  return (error) => {
    const now = clock.monotonicMs()
    const before = known.get(error.message)
    if (before && now - before.at < AGAIN_MS) {
      before.unsaid++
      return
    }
    if (known.size >= MOST_KNOWN) known.clear()
    known.set(error.message, { at: now, unsaid: 0 })
    const more = before?.unsaid ? { failuresBetween: before.unsaid } : {}
    logger.warn('log.trouble', { err: error, ...more }, 'The event log does not work; the coordinator keeps trying')
  }
}
