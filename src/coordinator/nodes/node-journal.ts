import { EventLogError, type EventAppender } from '../../events/event-log.ts'
import type { Clock } from '../../shared/clock.ts'
import { nodeStream, type NodeEvent } from './events.ts'
import type { NodeId } from '../../shared/ids.ts'

/** An event of a node, before it has its time. */
export type NewNodeEvent = {
  [T in NodeEvent['type']]: Omit<Extract<NodeEvent, { type: T }>, 'time'>
}[NodeEvent['type']]

/** Records the events of nodes. */
export interface NodeJournal {
  /** Reports the event at once; only the writer also appends it to the log. */
  record(nodeId: NodeId, made: NewNodeEvent): void
  /** Resolves when no event waits to be written. */
  settled(): Promise<void>
}

interface NodeJournalOptions {
  readonly log: EventAppender
  readonly clock: Clock
  readonly writes: () => boolean
  readonly onEvent?: (event: NodeEvent) => void
}

/** Writes each node's events to its stream, one append after the other. */
export function createNodeJournal(options: NodeJournalOptions): NodeJournal {
  const queues = new Map<NodeId, Promise<void>>()

  return {
    record(nodeId: NodeId, made: NewNodeEvent): void {
      const time = new Date(options.clock.now()).toISOString()
      options.onEvent?.({ ...made, time } as NodeEvent)
      if (!options.writes()) return
      const before = queues.get(nodeId) ?? Promise.resolve()
      const next = before
        .then(async () => {
          await options.log.append(nodeStream(nodeId), 'end', [{ type: made.type, v: 1, time, data: made.data }])
        })
        // Fenced: the new writer watches the nodes itself.
        .catch((error: unknown) => {
          if (!(error instanceof EventLogError)) throw error
        })
        .finally(() => {
          if (queues.get(nodeId) === next) queues.delete(nodeId)
        })
      queues.set(nodeId, next)
    },
    async settled(): Promise<void> {
      await Promise.all(queues.values())
    },
  }
}
