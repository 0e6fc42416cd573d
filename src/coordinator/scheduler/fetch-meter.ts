import type { Meters } from '../../telemetry/meters.ts'
import type { PageFetch } from './worker-client.ts'

/** Measures the pages that the coordinator fetches from workers, as the consumer of their exchange. */
export function createFetchMeter(meters: () => Meters): (fetch: PageFetch) => void {
  return ({ result, bytes, milliseconds }) => {
    meters().observe('exchangeRequestDuration', { result }, milliseconds / 1000)
    if (bytes > 0) meters().count('exchangeBytes', { direction: 'received' }, bytes)
  }
}
