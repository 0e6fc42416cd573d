import type { Recorded } from '../events/event-log.ts'
import type { QueryFacts } from './query-facts.ts'

/** What is sent to others. */
export interface Message {
  /** Messages of one key arrive in order wherever they go. */
  readonly key: string
  /** JSON in one line. */
  readonly text: string
}

/** What others are told of events. */
export interface Publication {
  /** Of events of these types alone. */
  readonly types: ReadonlySet<string>
  /**
   * Pure, but for what it asks: the same event is told in the same words again.
   * @param facts of the query as of the event, asked for when they are needed
   * @returns undefined when there is nothing to tell, also of forgotten data
   */
  messageOf(event: Recorded, facts: () => Promise<QueryFacts>): Promise<Message | undefined>
}

/** What became of messages. */
export interface Delivery {
  /** So many of the first ones are done with. */
  readonly taken: number
  /** Of these, what was refused for good, and why: no repetition brings it there. */
  readonly refused: readonly string[]
  /** Why the rest was not taken: it is to be tried again. */
  readonly trouble?: string
}

/** Where messages go. */
export interface Destination {
  /** In order, one call at a time. Never rejects for what the other side does. */
  deliver(messages: readonly Message[]): Promise<Delivery>
  close(): Promise<void>
}
