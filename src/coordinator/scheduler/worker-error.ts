import { QuipuError } from '../../shared/quipu-error.ts'

/** Why a request to a worker failed. */
export abstract class WorkerError extends QuipuError {
  abstract readonly kind: 'lost' | 'refused' | 'stale'
}

/**
 * A worker could not be reached, broke off, was silent for too long, or gave an answer that no healthy worker gives
 * (5xx, unreadable, too long). It is unknown whether it carried out the request. It may be back soon; others do its
 * work.
 */
export class WorkerLost extends WorkerError {
  readonly kind = 'lost'
  readonly retry = 'later'
}

/** A healthy worker refused the request (4xx): it did nothing, and would refuse the same request again. */
export class WorkerRefused extends WorkerError {
  readonly kind = 'refused'
  readonly retry = 'never'
  readonly status: number

  constructor(what: string, status: number, detail: string) {
    super(`${what}: the worker refuses it with HTTP ${status}${detail === '' ? '' : `: ${detail}`}`)
    this.status = status
  }
}

/** The worker has rightly seen a higher epoch: this coordinator is no longer the writer, and the new writer decides. */
export class StaleEpoch extends WorkerError {
  readonly kind = 'stale'
  readonly retry = 'later'
}
