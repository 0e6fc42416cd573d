import { isTaskTerminal, type TaskState } from '../../../execution/api/task.ts'
import type { QueryId, TaskId, NodeId } from '../../../shared/ids.ts'
import { unreachable } from '../../../shared/unreachable.ts'
import type { QueryEvent } from './events.ts'
import {
  initialQueryState,
  isDecided,
  isOnHold,
  type KnownQuery,
  type LiveQuery,
  type PlannedQuery,
  type QueryState,
  type ResultPageRecord,
  type TaskRecord,
} from './state.ts'
import { asFailure } from '../../../shared/engine-error.ts'

/**
 * The only fold of a query's stream: live object, recovery, projections and time travel all use it. Never throws; an
 * event that does not fit a state leaves the state unchanged.
 * @param queryId the stream
 */
export function evolve(queryId: QueryId, state: QueryState, event: QueryEvent): QueryState {
  if (event.type === 'QueryCreated') {
    if (state.kind !== 'NONE') return state
    return {
      kind: 'QUEUED',
      queryId,
      createdAt: event.time,
      created: event.data,
      tasks: new Map(),
      pages: [],
      resultComplete: false,
      pinned: new Set(),
      delivered: -1,
      lostTokens: [],
      recoveries: 0,
      eventsSinceRecovery: 0,
      updatedAt: event.time,
    }
  }
  switch (state.kind) {
    case 'NONE':
      return state
    case 'FINISHED':
    case 'FAILED':
      return afterTheEnd(state, event)
    case 'QUEUED':
    case 'PLANNING':
    case 'STARTING':
    case 'RUNNING':
    case 'FINISHING':
      return live(withEvent(state, event), event)
    default:
      return unreachable(state)
  }
}

/** Folds a whole stream from its beginning. */
export function foldQuery(queryId: QueryId, events: Iterable<QueryEvent>): QueryState {
  let state: QueryState = initialQueryState
  for (const event of events) state = evolve(queryId, state, event)
  return state
}

/**
 * After the end only events about deliveries and losses of the result's pages count; they do not change the kind of
 * state.
 */
function afterTheEnd<S extends KnownQuery>(state: S, event: QueryEvent): S {
  if (event.type === 'ResultsDelivered') return delivered(state, event.data.token)
  if (event.type === 'ResultPagesLost') return lost(state, event.data.tokens)
  return state
}

function withEvent<S extends LiveQuery>(state: S, event: QueryEvent): S {
  return { ...state, updatedAt: event.time, eventsSinceRecovery: state.eventsSinceRecovery + 1 }
}

/** One flat switch with a case for each kind of event; it is long because there are many. */
function live(state: LiveQuery, event: QueryEvent): QueryState {
  switch (event.type) {
    case 'QueryCreated':
      return state
    case 'QueryQueued':
      return state.kind === 'QUEUED'
        ? { ...state, queued: { ...event.data, at: state.queued?.at ?? event.time } }
        : state
    case 'QueryHeld':
      return state.kind === 'QUEUED' ? { ...state, hold: { ...event.data, at: event.time } } : state
    case 'QueryReleased':
      return isOnHold(state) ? { ...state, hold: { ...state.hold!, released: event.data } } : state
    case 'QueryAdmitted':
      if (state.kind !== 'QUEUED') return state
      return {
        admitted: { at: event.time, ...event.data },
        ...state,
        kind: 'PLANNING',
        // An earlier wait for a slot says nothing about the query's progress from here on.
        eventsSinceRecovery: state.recoveries > 0 ? 0 : state.eventsSinceRecovery,
      }
    case 'QueryPlanned':
      if (state.kind !== 'QUEUED' && state.kind !== 'PLANNING') return state
      return { planned: event.data, plannedAt: event.time, ...state, kind: 'STARTING' }
    case 'TaskCreated': {
      const { taskId, stage, nodeId, nodeUrl, attempt, retryOf, retryReason, remote } = event.data
      if (!isPlanned(state) || state.tasks.has(taskId)) return state
      return withTask(state, {
        taskId,
        stage,
        nodeId,
        nodeUrl,
        attempt,
        state: 'PLANNED',
        createdAt: event.time,
        ...(retryOf === undefined ? {} : { retryOf }),
        ...(retryReason === undefined ? {} : { retryReason }),
        ...(remote === undefined ? {} : { remote }),
      })
    }
    case 'TaskFinished': {
      const { taskId, stage, nodeId, nodeUrl, stats } = event.data
      if (!isPlanned(state)) return state
      // A stage-0 task exists from its TaskFinished on.
      const known = state.tasks.get(taskId) ?? newTask(taskId, stage, nodeId, nodeUrl, stats.createTime)
      return running(endTask(state, known, 'FINISHED', event.time, { stats }))
    }
    case 'TaskFailed': {
      const known = state.tasks.get(event.data.taskId)
      if (!isPlanned(state) || !known) return state
      const { failure, stats } = event.data
      return running(
        endTask(state, known, 'FAILED', event.time, { failure: asFailure(failure), ...(stats ? { stats } : {}) }),
      )
    }
    case 'TaskCanceled': {
      const known = state.tasks.get(event.data.taskId)
      if (!isPlanned(state) || !known) return state
      const { reason, stats } = event.data
      return endTask(state, known, reason === 'canceled' ? 'CANCELED' : 'ABORTED', event.time, stats ? { stats } : {})
    }
    case 'TaskRetried':
      return state
    case 'QueryProgressed': {
      if (!isPlanned(state)) return state
      const tasks = new Map(state.tasks)
      for (const { taskId, state: taskState, stats } of event.data.tasks) {
        const known = tasks.get(taskId)
        if (known && !isTaskTerminal(known.state) && !isTaskTerminal(taskState))
          tasks.set(taskId, { ...known, state: taskState, stats })
      }
      const { remote } = event.data
      const moved = remote && tasks.get(remote.taskId)
      if (remote && moved?.remote)
        tasks.set(moved.taskId, { ...moved, remote: { ...moved.remote, aliveUri: remote.uri } })
      return running({ ...state, tasks })
    }
    case 'ResultPagesPublished': {
      const { taskId, nodeUrl, batch, firstToken, pages, lastOfResult } = event.data
      // Tokens have no gaps; another token means that the event was decided against another state.
      if (!isPlanned(state) || state.resultComplete || firstToken !== state.pages.length) return state
      const added = pages.map((page): ResultPageRecord => ({
        taskId,
        batch,
        ...page,
        ...(nodeUrl === undefined ? {} : { nodeUrl }),
      }))
      const next = {
        ...state,
        pages: [...state.pages, ...added],
        resultComplete: lastOfResult,
        pinned: pages.length > 0 ? new Set([...state.pinned, `${taskId}/${batch}`]) : state.pinned,
      }
      return lastOfResult ? { ...next, kind: 'FINISHING' } : running(next)
    }
    case 'ResultsDelivered':
      return delivered(state, event.data.token)
    case 'ResultPagesLost':
      return lost(state, event.data.tokens)
    case 'WritePrepared':
      return isPlanned(state) && !state.write ? { ...state, write: { ...event.data, at: event.time } } : state
    case 'WriteCommitted':
      return state.write && !state.committed ? { ...state, committed: { ...event.data, at: event.time } } : state
    case 'QueryRecovered':
      return { ...state, recoveries: state.recoveries + 1, eventsSinceRecovery: 0 }
    case 'QueryFinished':
      if (!isPlanned(state)) return state
      return { finished: event.data, endedAt: event.time, ...state, kind: 'FINISHED' }
    case 'QueryFailed':
      // A prepared write is the decision to commit: from then on the query can only finish.
      if (isDecided(state)) return state
      return {
        ...state,
        kind: 'FAILED',
        failure: asFailure(event.data.failure),
        failed: event.data,
        endedAt: event.time,
      }
    default:
      return unreachable(event)
  }
}

function isPlanned(
  state: LiveQuery,
): state is LiveQuery & PlannedQuery & { kind: 'STARTING' | 'RUNNING' | 'FINISHING' } {
  return state.kind !== 'QUEUED' && state.kind !== 'PLANNING'
}

type PlannedLive = PlannedQuery & { readonly kind: 'STARTING' | 'RUNNING' | 'FINISHING' }

function running(state: PlannedLive): PlannedLive {
  return state.kind === 'STARTING' ? { ...state, kind: 'RUNNING' } : state
}

function newTask(taskId: TaskId, stage: number, nodeId: NodeId, nodeUrl: string, createdAt: string): TaskRecord {
  return { taskId, stage, nodeId, nodeUrl, state: 'RUNNING', attempt: 0, createdAt }
}

function withTask(state: PlannedLive, task: TaskRecord): PlannedLive {
  return { ...state, tasks: new Map(state.tasks).set(task.taskId, task) }
}

function endTask(
  state: PlannedLive,
  task: TaskRecord,
  to: TaskState,
  endedAt: string,
  more: Partial<Pick<TaskRecord, 'stats' | 'failure'>>,
): PlannedLive {
  if (isTaskTerminal(task.state)) return state
  return withTask(state, { endedAt, ...task, ...more, state: to })
}

function delivered<S extends KnownQuery>(state: S, token: number): S {
  return token > state.delivered ? { ...state, delivered: token } : state
}

function lost<S extends KnownQuery>(state: S, tokens: readonly number[]): S {
  return { ...state, lostTokens: [...new Set([...state.lostTokens, ...tokens])].sort((a, b) => a - b) }
}
