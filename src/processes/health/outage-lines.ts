import type { Clock } from '../../shared/clock.ts'
import type { Logger } from '../../telemetry/logger.ts'

/** An outage longer than this does not heal by itself. */
const HEALS_WITHIN_MS = 15_000

/**
 * Logs dependencies that do not answer: a warning at once, an error when an operator must act. A report without a
 * change makes no line.
 */
export function createOutageLines(
  logger: Pick<Logger, 'info' | 'warn' | 'error'>,
  clock: Pick<Clock, 'monotonicMs'>,
): (dependency: string, is: 'up' | 'down', reason?: string) => void {
  const outages = new Map<string, { readonly since: number; readonly timer: NodeJS.Timeout }>()
  return (dependency, is, reason) => {
    const before = outages.get(dependency)
    if ((before !== undefined) === (is === 'down')) return
    clearTimeout(before?.timer)
    outages.delete(dependency)
    if (is === 'up') {
      const downMillis = before && Math.round(clock.monotonicMs() - before.since)
      return logger.info('dependency.up', { dependency, downMillis }, 'The dependency answers again')
    }
    logger.warn('dependency.down', { dependency, reason }, 'The dependency does not answer; requests that need it wait')
    const timer = setTimeout(
      () =>
        logger.error(
          'dependency.down',
          { dependency },
          `The dependency has not answered for ${HEALS_WITHIN_MS / 1000} s: check it`,
        ),
      HEALS_WITHIN_MS,
    )
    outages.set(dependency, { since: clock.monotonicMs(), timer: timer.unref() })
  }
}
