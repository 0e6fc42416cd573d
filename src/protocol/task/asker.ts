import type { IncomingMessage } from 'node:http'
import { internalHeaders } from '../../execution/api/task.ts'
import type { TaskManager } from '../../execution/worker/task-manager.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { HttpProblem } from '../edge/problem.ts'
import { isAuthorized, keyNeeded } from './internal-request.ts'

/** Who has the cluster's key, or reads what anybody may. */
type Asker = 'coordinator' | 'anybody'

export interface AskerDeps {
  readonly tasks: Pick<TaskManager, 'epochs' | 'noteContact'>
  /** The cluster's key, as after `Authorization: Bearer `. */
  readonly bearer: string
  /** `GET /v1/task` and `GET /v1/task/{id}` without the key: a loopback listener without authentication. */
  readonly openReads: boolean
}

/** Who may ask a worker for what, and who speaks for the log. */
export interface Askers {
  /**
   * @param open may anybody ask it, where reads are open?
   * @throws HttpProblem 401
   */
  authorize(request: IncomingMessage, open: boolean): Asker
  /**
   * The highest epoch of a log wins, and a lower one has no effect at all. Only who has the key speaks for a coordinator:
   * what anybody else says of epochs is not looked at.
   * @param needed must a coordinator say its epoch?
   * @throws HttpProblem 409 for an epoch that is over, 400 for one that cannot be
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
        throw new HttpProblem(400, `${internalHeaders.epoch} and ${internalHeaders.log} must be the coordinator's`)
      }
      const verdict = tasks.epochs.accept(Number(text), logId)
      switch (verdict) {
        case 'accepted':
          return tasks.noteContact()
        case 'stale':
          throw new HttpProblem(409, 'A coordinator with a higher epoch has taken over')
        case 'implausible':
          throw new HttpProblem(400, `Epoch ${text} is too far from those that this worker has heard of`)
        default:
          return unreachable(verdict)
      }
    },
  }
}
