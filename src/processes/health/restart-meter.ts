import type { Meters } from '../../telemetry/meters.ts'
import type { ChildLife } from '../child-life.ts'

/**
 * Counts how often the supervisor restarted processes. The supervisor's figures outlive this process, so the counter
 * begins with them.
 * @param counted what this process has counted already
 * @returns a function to call before each scrape
 */
export function createRestartMeter(
  life: Pick<ChildLife, 'restarts'>,
  meters: Meters,
  counted: Map<string, number>,
): () => void {
  return () => {
    for (const { process, reason, count } of life.restarts()) {
      if (process !== 'coordinator' && process !== 'worker') continue
      const key = `${process} ${reason}`
      meters.count('processRestarts', { process, reason }, count - (counted.get(key) ?? 0))
      counted.set(key, count)
    }
  }
}
