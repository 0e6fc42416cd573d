import type { Meters } from '../../telemetry/meters.ts'
import type { ChildLife } from '../child-life.ts'

/**
 * Counts what the supervisor counted: how often it started processes again. The supervisor's figures outlive this
 * process, so the counter begins where they are.
 * @param counted what this process has counted already
 * @returns to be called before each scrape
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
