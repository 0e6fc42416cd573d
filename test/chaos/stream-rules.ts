import { isTaskTerminal } from '../../src/execution/api/task.ts'
import { queryOfStream } from '../../src/shared/ids.ts'
import { decodeQueryEvent } from '../../src/coordinator/query/stream/decode-event.ts'
import type { QueryEventType } from '../../src/coordinator/query/stream/events.ts'
import { evolve } from '../../src/coordinator/query/stream/evolve.ts'
import { initialQueryState, type QueryState, type QueryStateKind } from '../../src/coordinator/query/stream/state.ts'
import type { Recorded } from '../../src/events/event-log.ts'

const WHILE_PLANNED: readonly QueryEventType[] = [
  'TaskCreated',
  'TaskFinished',
  'TaskFailed',
  'TaskCanceled',
  'TaskRetried',
  'QueryProgressed',
  'ResultsDelivered',
  'ResultPagesLost',
  'WritePrepared',
  'WriteCommitted',
  'QueryRecovered',
  'QueryFinished',
  'QueryFailed',
]

/** The events that are possible in each state. The list is independent of the state machine that it checks. */
const MAY_FOLLOW: Readonly<Record<QueryStateKind, readonly QueryEventType[]>> = {
  NONE: ['QueryCreated'],
  QUEUED: ['QueryQueued', 'QueryAdmitted', 'QueryPlanned', 'QueryRecovered', 'QueryFailed'],
  PLANNING: ['QueryPlanned', 'QueryRecovered', 'QueryFailed'],
  STARTING: [...WHILE_PLANNED, 'ResultPagesPublished'],
  RUNNING: [...WHILE_PLANNED, 'ResultPagesPublished'],
  FINISHING: WHILE_PLANNED,
  FINISHED: ['ResultsDelivered', 'ResultPagesLost'],
  FAILED: ['ResultsDelivered', 'ResultPagesLost'],
}

const ORDER: readonly QueryStateKind[] = ['NONE', 'QUEUED', 'PLANNING', 'STARTING', 'RUNNING', 'FINISHING']

export interface FoldedStream {
  readonly state: QueryState
  /** The violations of the rules, a line each. */
  readonly broken: readonly string[]
}

/** Folds a query's stream with the state machine of the server and lists the violations of the rules. */
export function foldStream(queryId: string, events: readonly Recorded[]): FoldedStream {
  const broken: string[] = []
  let state: QueryState = initialQueryState
  let endCount = 0
  let time = ''
  for (const [index, recorded] of events.entries()) {
    const at = `${queryId}/${recorded.sequence} ${recorded.type}`
    const event = decodeQueryEvent(recorded)
    if (recorded.sequence !== index + 1) broken.push(`${at}: place ${index + 1} of the stream`)
    if (!event) {
      broken.push(`${at}: no event of a query`)
      continue
    }
    if (event.time < time) broken.push(`${at}: time goes back from ${time} to ${event.time}`)
    time = event.time
    if (!MAY_FOLLOW[state.kind].includes(event.type)) broken.push(`${at} in state ${state.kind}`)
    if (event.type === 'QueryFinished' || event.type === 'QueryFailed') endCount++
    if (state.kind !== 'NONE') {
      if (event.type === 'ResultPagesPublished' && event.data.firstToken !== state.pages.length) {
        broken.push(`${at}: first token ${event.data.firstToken} after ${state.pages.length} pages`)
      }
      if (event.type === 'TaskFinished' || event.type === 'TaskFailed') {
        const task = state.tasks.get(event.data.taskId)
        if (task && isTaskTerminal(task.state)) broken.push(`${at}: task ${task.taskId} is ${task.state}`)
      }
    }
    const next: QueryState = evolve(queryOfStream(queryId), state, event)
    if (ORDER.indexOf(next.kind) < ORDER.indexOf(state.kind) && ORDER.includes(next.kind)) {
      broken.push(`${at}: from ${state.kind} back to ${next.kind}`)
    }
    state = next
  }
  if (endCount !== 1) broken.push(`${queryId}: ${endCount} ends, ${state.kind}`)
  return { state, broken }
}
