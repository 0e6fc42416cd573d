import type { Example } from './compare-results.ts'
import type { Speed } from './timing.ts'
import type { ReplayVerdict } from './verdict.ts'

/** The outcome of one statement that ran on both servers. */
export interface Replayed {
  readonly verdict: ReplayVerdict
  /** Milliseconds of wall time from the POST to the last page; absent if the run failed. */
  readonly hereMs?: number
  readonly thereMs?: number
  /** The id of the statement on the other server; absent if that server gave none. */
  readonly thereQueryId?: string
  readonly rows?: number
  readonly byDigest?: true
  readonly speed?: Speed
  readonly examples: readonly Example[]
}
