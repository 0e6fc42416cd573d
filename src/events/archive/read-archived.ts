import type { ArchivedEvent } from './archived-records.ts'
import { LogChanged, type Recorded } from '../event-log.ts'

export interface ArchivedPart {
  readonly stream: string
  /** Sequence of the event before the first one to read. */
  readonly after: number
  /** Sequence of the first event that the log or the read models still have; undefined: they have none. */
  readonly before: number | undefined
}

/**
 * Reads the events of a stream that only the archive still has, one after the other.
 * @param open makes the event that readers get
 * @throws LogChanged when one is missing
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
      throw new LogChanged(`Stream ${stream} has a gap in the archive after sequence ${last?.sequence ?? after}`)
    last = event
    yield event
  }
}
