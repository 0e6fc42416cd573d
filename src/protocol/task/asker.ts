import type { IncomingMessage } from 'node:http'
import { internalHeaders } from '../../execution/api/task.ts'
import type { TaskManager } from '../../execution/worker/task-manager.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { HttpProblem } from '../edge/problem.ts'
import { isAuthorized, keyNeeded } from './internal-request.ts'

/** The kind of a caller: with the cluster's key, or without it for open reads. */
type Asker = 'coordinator' | 'anybody'

export interface AskerDeps {
  readonly tasks: Pick<TaskManager, 'epochs' | 'noteContact'>
  /** The cluster's key, as after `Authorization: Bearer `. */
  readonly bearer: string
  /**
   * Whether `GET /v1/task` and `GET /v1/task/{id}` work without the key: on a loopback listener without authentication.
   */
  readonly openReads: boolean
}

/** Decides which callers may do what on a worker, and which epochs count. */
export interface Askers {
  /**
   * Checks the key.
   * @param open whether callers without the key are accepted where reads are open
   * @throws HttpProblem 401
   */
  authorize(request: IncomingMessage, open: boolean): Asker
  /**
   * Checks the caller's epoch. The highest epoch of a log wins, and a request with a lower one has no effect. Only a
   * caller with the key speaks for a coordinator: epochs of other callers are ignored.
   * @param needed whether a coordinator must send its epoch
   * @throws HttpProblem 409 for an epoch that is over, 400 for an implausible one
   */
  checkEpoch(asker: Asker, request: IncomingMessage, needed: boolean): void
}

export function createAskers({ tasks, bearer, openReads }: AskerDeps): Askers {
  return {
    authorize(request, open) {
      if (isAuthorized(request, bearer)) return 'coordinator'
      if (open && openReads) return 'anybody'
      throw keyNeeded()
    },
    checkEpoch(asker, request, needed) {
      if (asker === 'anybody') return
      const text = request.headers[internalHeaders.epoch]
      if (text === undefined && !needed) return
      const logId = request.headers[internalHeaders.log]
      const isLog = logId === undefined || (typeof logId === 'string' && /^[\w-]{1,64}$/.test(logId))
      if (typeof text !== 'string' || !/^\d{1,10}$/.test(text) || !isLog) {
        throw new HttpProblem(
          400,
          `${internalHeaders.epoch} and ${internalHeaders.log} must name the epoch and the log of the coordinator`,
        )
      }
      const verdict = tasks.epochs.accept(Number(text), logId)
      switch (verdict) {
        case 'accepted':
          return tasks.noteContact()
        case 'stale':
          throw new HttpProblem(409, 'A coordinator with a higher epoch has taken over')
        case 'implausible':
          throw new HttpProblem(400, `Epoch ${text} is too far from the epochs that this worker has stored`)
        default:
          return unreachable(verdict)
      }
    },
  }
}
