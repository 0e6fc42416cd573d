import type { Recorded } from '../events/event-log.ts'
import type { QueryFacts } from './query-facts.ts'

/** A message to another system. */
export interface Message {
  /** Messages with the same key arrive in order at every destination. */
  readonly key: string
  /** JSON in one line. */
  readonly text: string
}

/** Decides what is published of events. */
export interface Publication {
  /** Only events of these types are published. */
  readonly types: ReadonlySet<string>
  /**
   * Makes the message of an event. Deterministic apart from the facts: the same event gives the same message again.
   * @param facts reads the facts of the query up to the event, when they are needed
   * @returns undefined if there is nothing to publish, also for forgotten data
   */
  messageOf(event: Recorded, facts: () => Promise<QueryFacts>): Promise<Message | undefined>
}

/** The outcome of a delivery. */
export interface Delivery {
  /** How many of the first messages are done. */
  readonly taken: number
  /** The messages among these that were refused for good, with the reason: a retry would not help. */
  readonly refused: readonly string[]
  /** Why the rest was not accepted. It must be tried again. */
  readonly trouble?: string
}

/** A system that messages are sent to. */
export interface Destination {
  /** Delivers in order, one call at a time. Never rejects because of the other side. */
  deliver(messages: readonly Message[]): Promise<Delivery>
  close(): Promise<void>
}
