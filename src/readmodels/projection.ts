import { clusterStreamPrefix } from '../coordinator/clusters/events.ts'
import { nodeStreamPrefix } from '../coordinator/nodes/events.ts'
import { systemStream } from '../coordinator/system/events.ts'
import type { Recorded } from '../events/event-log.ts'
import { eventKey, type DeadLetter, type FoldContext, type Folded, type Projection } from '../events/projection.ts'
import { AuditBatch } from './audit/projection.ts'
import { beginClusters } from './clusters/projection.ts'
import { beginNodes } from './nodes/projection.ts'
import { ForgetBatch } from './queries/forget.ts'
import { QueryFolds } from './queries/projection.ts'
import { queryEventWrites } from './query-events/table.ts'

/**
 * Version of the read models. `readable` is the oldest version whose rows this program can read and extend after its
 * migrations: such tables serve while tables of this version are built. Raise it with a change that makes older rows
 * unreadable.
 */
export const READ_MODELS = { name: 'readmodels', version: 5, readable: 3 } as const

/**
 * Makes the projection of all read models: they move together, under one checkpoint.
 * @param queries folds to keep from batch to batch
 */
export function createReadModelsProjection(queries = new QueryFolds()): Projection {
  let days = new Set<string>()
  return {
    ...READ_MODELS,
    async fold(batch, context) {
      const ofQueries: Recorded[] = []
      const ofNodes: Recorded[] = []
      const ofClusters: Recorded[] = []
      for (const event of batch) {
        if (isNodeEvent(event)) ofNodes.push(event)
        else if (isClusterEvent(event)) ofClusters.push(event)
        else if (!isSystemEvent(event) && !context.parked.has(event.stream)) ofQueries.push(event)
      }
      const queryBatch = await queries.begin(ofQueries, context.query)
      const nodeBatch = await beginNodes(ofNodes, context.query)
      const clusterBatch = await beginClusters(ofClusters, context.query)
      const auditBatch = new AuditBatch()
      const forgetBatch = new ForgetBatch()
      const dead = deadLettersOf(batch, context, (event) => {
        if (isNodeEvent(event)) nodeBatch.apply(event)
        else if (isClusterEvent(event)) clusterBatch.apply(event)
        else if (isSystemEvent(event)) {
          auditBatch.apply(event)
          forgetBatch.apply(event)
        } else queryBatch.apply(event)
      })
      for (const { kind, event } of dead) if (kind === 'failed' && isQueryEvent(event)) queryBatch.leaveOut(event)
      const events = queryEventWrites(batch, days)
      return {
        writes: [
          ...events.writes,
          ...queryBatch.writes(),
          ...nodeBatch.writes(),
          ...clusterBatch.writes(),
          ...auditBatch.writes(),
          ...forgetBatch.writes(),
        ],
        dead: dead.map((letter) => forgetBatch.withoutData(letter)),
        keep() {
          queryBatch.keep()
          for (const stream of forgetBatch.streams) queries.forget(stream)
          days = new Set([...days, ...events.newDays])
        },
      } satisfies Folded
    },
    eventAlone: (event) => queryEventWrites([event], days).writes,
    reset() {
      queries.clear()
      days = new Set()
    },
  }
}

/** Applies a batch in order. Returns the events that could not be applied, and later events of their streams. */
function deadLettersOf(
  batch: readonly Recorded[],
  context: FoldContext,
  apply: (event: Recorded) => void,
): DeadLetter[] {
  const dead: DeadLetter[] = []
  const parked = new Set(context.parked)
  for (const event of batch) {
    // Events of `system` do not build on each other: a failed one does not park the others.
    if (parked.has(event.stream) && !isSystemEvent(event)) {
      dead.push({ kind: 'parked', event })
      continue
    }
    try {
      if (context.refused.has(eventKey(event))) throw context.refused.get(eventKey(event))
      apply(event)
    } catch (error) {
      dead.push({ kind: 'failed', event, error })
      parked.add(event.stream)
    }
  }
  return dead
}

function isNodeEvent(event: Recorded): boolean {
  return event.stream.startsWith(nodeStreamPrefix)
}

function isClusterEvent(event: Recorded): boolean {
  return event.stream.startsWith(clusterStreamPrefix)
}

/** The stream of a query is its id. */
function isQueryEvent(event: Recorded): boolean {
  return !isNodeEvent(event) && !isClusterEvent(event) && !isSystemEvent(event)
}

function isSystemEvent(event: Recorded): boolean {
  return event.stream === systemStream
}
