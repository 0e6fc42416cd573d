import { QuipuError } from '../../shared/quipu-error.ts'

/** What became of a request to a worker, when it was not done. */
export abstract class WorkerError extends QuipuError {
  abstract readonly kind: 'lost' | 'refused' | 'stale'
}

/**
 * A worker that could not be reached, broke off, said nothing in its time, or answered as no worker in order does (5xx, nonsense, more
 * than any answer has): says nothing about what it did. It may be back soon; others do its work.
 */
export class WorkerLost extends WorkerError {
  readonly kind = 'lost'
  readonly retry = 'later'
}

/** A worker that is well and says no (4xx): it did nothing, and says no again to the same. */
export class WorkerRefused extends WorkerError {
  readonly kind = 'refused'
  readonly retry = 'never'
  readonly status: number

  constructor(what: string, status: number, detail: string) {
    super(`${what}: the worker refuses it with HTTP ${status}${detail === '' ? '' : `: ${detail}`}`)
    this.status = status
  }
}

/** The worker has seen a higher epoch, and is right: this coordinator is no longer the writer, and who is decides. */
export class StaleEpoch extends WorkerError {
  readonly kind = 'stale'
  readonly retry = 'later'
}
