import type { ArchivedEvent } from './archived-records.ts'
import { LogChanged, type Recorded } from '../event-log.ts'

export interface ArchivedPart {
  readonly stream: string
  /** Sequence of the event before the first that is told. */
  readonly after: number
  /** Sequence of the first event that others tell; undefined: they have none. */
  readonly before: number | undefined
}

/**
 * The part of a stream that others do not tell any more, one event after the other.
 * @param open what readers get of an event
 * @throws LogChanged where one is missing
 */
export async function* readArchived(
  events: AsyncIterable<ArchivedEvent>,
  { stream, after, before }: ArchivedPart,
  open: (event: ArchivedEvent) => Recorded | Promise<Recorded>,
): AsyncIterable<Recorded> {
  let last: Recorded | undefined
  for await (const archived of events) {
    const event = await open(archived)
    if (before !== undefined && event.sequence >= before) return
    if (event.sequence !== (last?.sequence ?? after) + 1 || (last && event.prevhash !== last.hash))
      throw new LogChanged(`Stream ${stream} breaks in the archive after sequence ${last?.sequence ?? after}`)
    last = event
    yield event
  }
}
