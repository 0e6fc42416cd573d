import type { Failure } from '../../../shared/engine-error.ts'
import { unreachable } from '../../../shared/unreachable.ts'
import type { EndedBy, QueryEvent, QueryEventOf, QueryEventType } from './events.ts'
import { isTaskTerminal } from '../../../execution/api/task.ts'
import { isCommitted, isDecided, isOnHold, isTerminal, type QueryState } from './state.ts'
import { ROOT_STAGE, type TaskId } from '../../../shared/ids.ts'

type Data<T extends QueryEventType> = QueryEventOf<T>['data']
export type EndFigures = Omit<Data<'QueryFailed'>, 'failure' | 'endedBy'>

/** A command that may be refused: one that is late, repeated or contradictory gives no events. */
export type QueryCommand = Wish & {
  /** When the command was made, ISO UTC: its append may wait a little to be batched. @default the time of the append */
  readonly at?: string
}

type Wish =
  | { readonly type: 'CreateQuery'; readonly data: Data<'QueryCreated'> }
  | { readonly type: 'QueueQuery'; readonly data: Data<'QueryQueued'> }
  | { readonly type: 'HoldQuery'; readonly data: Data<'QueryHeld'> }
  | { readonly type: 'ReleaseQuery'; readonly data: Data<'QueryReleased'> }
  | { readonly type: 'AdmitQuery'; readonly data: Data<'QueryAdmitted'> }
  | { readonly type: 'PlanQuery'; readonly data: Data<'QueryPlanned'> }
  | { readonly type: 'CreateTask'; readonly data: Data<'TaskCreated'> }
  | { readonly type: 'ReportProgress'; readonly data: Data<'QueryProgressed'> }
  | { readonly type: 'FinishTask'; readonly data: Data<'TaskFinished'> }
  | { readonly type: 'FailTask'; readonly data: Data<'TaskFailed'> }
  | { readonly type: 'RetryTask'; readonly data: Data<'TaskRetried'> }
  | { readonly type: 'CancelTask'; readonly data: Data<'TaskCanceled'> }
  | { readonly type: 'PublishPages'; readonly data: Data<'ResultPagesPublished'> }
  | { readonly type: 'DeliverResults'; readonly data: Data<'ResultsDelivered'> }
  | { readonly type: 'LosePages'; readonly data: Data<'ResultPagesLost'> }
  | { readonly type: 'PrepareWrite'; readonly data: Data<'WritePrepared'> }
  | { readonly type: 'CommitWrite'; readonly data: Data<'WriteCommitted'> }
  | { readonly type: 'RecoverQuery'; readonly data: Data<'QueryRecovered'> }
  | { readonly type: 'FinishQuery'; readonly data: Data<'QueryFinished'> }
  | {
      readonly type: 'FailQuery'
      readonly failure: Failure
      readonly endedBy?: EndedBy | undefined
      readonly figures: EndFigures
    }

/** Decides a command on a state: the events, in order; none when it is refused. `at` is ISO UTC. Never throws. */
export function decide(state: QueryState, command: QueryCommand, at: string): readonly QueryEvent[] {
  if (command.type === 'CreateQuery')
    return state.kind === 'NONE' ? [{ type: 'QueryCreated', time: at, data: command.data }] : []
  if (state.kind === 'NONE') return []
  switch (command.type) {
    case 'DeliverResults':
      return command.data.token > state.delivered ? [{ type: 'ResultsDelivered', time: at, data: command.data }] : []
    case 'LosePages': {
      const tokens = command.data.tokens.filter((token) => !state.lostTokens.includes(token))
      return tokens.length > 0 ? [{ type: 'ResultPagesLost', time: at, data: { ...command.data, tokens } }] : []
    }
    default:
      if (isTerminal(state.kind)) return []
  }
  const planned = state.kind !== 'QUEUED' && state.kind !== 'PLANNING'
  switch (command.type) {
    case 'QueueQuery':
      // Queued again when another coordinator puts it into another group.
      return state.kind === 'QUEUED' && state.queued?.resourceGroup !== command.data.resourceGroup
        ? [{ type: 'QueryQueued', time: at, data: command.data }]
        : []
    case 'HoldQuery':
      // An act holds a query once: its hold may have been released since.
      return state.kind === 'QUEUED' && state.queued && !isOnHold(state) && state.hold?.act !== command.data.act
        ? [{ type: 'QueryHeld', time: at, data: command.data }]
        : []
    case 'ReleaseQuery':
      return isOnHold(state) ? [{ type: 'QueryReleased', time: at, data: command.data }] : []
    case 'AdmitQuery':
      // Only a query that waited is admitted by an event; for any other query the plan implies it.
      return state.kind === 'QUEUED' && state.queued ? [{ type: 'QueryAdmitted', time: at, data: command.data }] : []
    case 'PlanQuery':
      return planned ? [] : [{ type: 'QueryPlanned', time: at, data: command.data }]
    case 'CreateTask':
      return planned && !state.tasks.has(command.data.taskId)
        ? [{ type: 'TaskCreated', time: at, data: command.data }]
        : []
    case 'ReportProgress':
      return planned && (command.data.tasks.length > 0 || command.data.remote)
        ? [{ type: 'QueryProgressed', time: at, data: command.data }]
        : []
    case 'FinishTask': {
      const task = state.tasks.get(command.data.taskId)
      if (!planned || (task && isTaskTerminal(task.state)) || (!task && command.data.stage !== ROOT_STAGE)) return []
      return [{ type: 'TaskFinished', time: at, data: command.data }]
    }
    case 'FailTask':
      return isOpenTask(state, command.data.taskId) ? [{ type: 'TaskFailed', time: at, data: command.data }] : []
    case 'RetryTask':
      return state.tasks.has(command.data.taskId) ? [{ type: 'TaskRetried', time: at, data: command.data }] : []
    case 'CancelTask':
      return isOpenTask(state, command.data.taskId) ? [{ type: 'TaskCanceled', time: at, data: command.data }] : []
    case 'PublishPages':
      return planned && !state.resultComplete && command.data.firstToken === state.pages.length
        ? [{ type: 'ResultPagesPublished', time: at, data: command.data }]
        : []
    case 'PrepareWrite':
      return planned && !state.write ? [{ type: 'WritePrepared', time: at, data: command.data }] : []
    case 'CommitWrite':
      return state.write && !state.committed ? [{ type: 'WriteCommitted', time: at, data: command.data }] : []
    case 'RecoverQuery':
      return [{ type: 'QueryRecovered', time: at, data: command.data }]
    case 'FinishQuery':
      // All rows exactly once: a query with an incomplete result cannot finish, and a prepared write finishes with its
      // commit. The pages of a delegated query are in no event.
      return planned &&
        (state.resultComplete || state.planned?.columns.length === 0 || state.planned?.route === 'delegated') &&
        (!state.write || isCommitted(state))
        ? [{ type: 'QueryFinished', time: at, data: command.data }]
        : []
    case 'FailQuery': {
      // A cancel comes here too. A prepared write is decided: nothing can fail the query any more.
      if (isDecided(state)) return []
      const { failure, endedBy, figures } = command
      return [{ type: 'QueryFailed', time: at, data: { failure, ...(endedBy && { endedBy }), ...figures } }]
    }
    default:
      return unreachable(command)
  }
}

function isOpenTask(state: QueryState, taskId: TaskId): boolean {
  if (state.kind === 'NONE') return false
  const task = state.tasks.get(taskId)
  return task !== undefined && !isTaskTerminal(task.state)
}
