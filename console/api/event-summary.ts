/** An event of a query's stream without its data. */
export interface EventHead {
  /** The event's type with its version: `quipu.query.planned.v2`. */
  readonly type: string
  /** ISO UTC. */
  readonly time: string
  /** Its position in the stream, from 1. */
  readonly sequence: number
}

/**
 * The events of a query's stream, counted. It has the same size for ten events and for a million, so the page never
 * holds a stream.
 */
export interface EventSummary {
  /** The number of all events. */
  readonly count: number
  readonly last: EventHead | undefined
  /** Time of the first event, milliseconds since the epoch. */
  readonly begin: number
  /** Length of a part, milliseconds: a power of two. */
  readonly partMs: number
  /** The parts of the time that have events, at most `MOST_PARTS`. Together they are the whole stream, in its order. */
  readonly parts: readonly EventPart[]
  /** Sequences of the newest plans of the query. */
  readonly plans: readonly number[]
  /** Whether one of the events is the end of the query. Deliveries of its result may come later. */
  readonly hasEnd: boolean
}

/** A run of a stream, whose events fall into one part of the time. */
export interface EventPart {
  /** The part begins at `begin + index × partMs`. */
  readonly index: number
  /** Sequence of its first event. */
  readonly first: number
  /** The number of events by their kind. */
  readonly counts: ReadonlyMap<string, number>
}

export const MOST_PARTS = 200
/** A query has a plan, and sometimes further ones after failures. */
const MOST_PLANS = 100

export const NO_EVENTS: EventSummary = {
  count: 0,
  last: undefined,
  begin: 0,
  partMs: 1,
  parts: [],
  plans: [],
  hasEnd: false,
}

/** The kind of an event: its type without the version. */
export function kindOf({ type }: { readonly type: string }): string {
  return type.replace(/\.v\d+$/, '')
}

/** Adds the next events of the stream to a summary. Pages of any length give the same summary. */
export function foldEvents(before: EventSummary, events: readonly EventHead[]): EventSummary {
  const [first] = events
  const end = events.at(-1)
  if (!first || !end) return before
  const begin = before.count === 0 ? Date.parse(first.time) || 0 : before.begin
  let { partMs } = before
  let parts = before.parts.map(copyOf)
  for (const event of events) {
    const last = parts.at(-1)
    // A clock may go back, but parts are runs of the stream.
    let index = Math.max(last?.index ?? 0, Math.floor((Date.parse(event.time) - begin) / partMs) || 0)
    for (; index >= MOST_PARTS; index = Math.floor(index / 2)) {
      parts = joinPairs(parts)
      partMs *= 2
    }
    const present = parts.at(-1)
    const part = present?.index === index ? present : { index, first: event.sequence, counts: new Map() }
    if (part !== present) parts.push(part)
    add(part.counts, kindOf(event), 1)
  }
  const plans = events.filter((event) => kindOf(event) === 'quipu.query.planned').map(({ sequence }) => sequence)
  return {
    count: before.count + events.length,
    last: { type: end.type, time: end.time, sequence: end.sequence },
    begin,
    partMs,
    parts,
    plans: [...before.plans, ...plans].slice(-MOST_PLANS),
    hasEnd: before.hasEnd || events.some(isEndOfQuery),
  }
}

/** The number of events by their kind. */
export function countKinds({ parts }: Pick<EventSummary, 'parts'>): ReadonlyMap<string, number> {
  const sums = new Map<string, number>()
  for (const { counts } of parts) for (const [kind, count] of counts) add(sums, kind, count)
  return sums
}

/** The number of events of some kinds in a part. */
export function countIn({ counts }: EventPart, kinds: readonly string[]): number {
  return kinds.reduce((sum, kind) => sum + (counts.get(kind) ?? 0), 0)
}

/**
 * Finds a row of the list of all events of some kinds.
 * @param row its number, from 0
 * @returns the sequence after which to read, and how many events of these kinds are before the row from there on
 */
export function positionOf(
  { parts, last }: EventSummary,
  kinds: readonly string[],
  row: number,
): { readonly after: number; readonly skip: number } {
  let skip = row
  for (const part of parts) {
    const found = countIn(part, kinds)
    if (skip < found) {
      const isOfAll = found === countIn(part, [...part.counts.keys()])
      return isOfAll ? { after: part.first - 1 + skip, skip: 0 } : { after: part.first - 1, skip }
    }
    skip -= found
  }
  return { after: last?.sequence ?? 0, skip }
}

function isEndOfQuery(event: EventHead): boolean {
  return /^quipu\.query\.(finished|failed)$/.test(kindOf(event))
}

interface GrowingPart extends EventPart {
  readonly counts: Map<string, number>
}

function copyOf(part: EventPart): GrowingPart {
  return { ...part, counts: new Map(part.counts) }
}

/** Makes parts that are twice as long. */
function joinPairs(parts: readonly GrowingPart[]): GrowingPart[] {
  const joined: GrowingPart[] = []
  for (const part of parts) {
    const index = Math.floor(part.index / 2)
    const last = joined.at(-1)
    if (last?.index === index) for (const [kind, count] of part.counts) add(last.counts, kind, count)
    else joined.push({ ...part, index })
  }
  return joined
}

function add(counts: Map<string, number>, kind: string, count: number): void {
  counts.set(kind, (counts.get(kind) ?? 0) + count)
}
