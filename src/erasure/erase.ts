import { setTimeout as sleep } from 'node:timers/promises'
import type { Administrator, ForgetOutcome, PartOfErasure } from '../coordinator/system/forget-query.ts'
import type { SystemJournal } from '../coordinator/system/system-journal.ts'
import { Unforgettable, type Recorded } from '../events/event-log.ts'
import { queryOfStream, type QueryId } from '../shared/ids.ts'
import type { ErasureScope } from './classify.ts'
import type { ErasureRequest, ErasureResult, ErasureStore, StoredErasure } from './erasure-store.ts'
import { searchLogs, type FoundEvent, type SearchedLogs } from './search-logs.ts'
import { searchFor, type Subject } from './subject.ts'
import type { Proof } from './verify-erasure.ts'

/** Forgets data in the log, as the process that writes it. */
export interface ErasureWriter {
  readonly journal: Pick<SystemJournal, 'record'>
  /** @throws Unforgettable */
  readonly forgetQuery: (
    queryId: QueryId,
    administrator: Administrator,
    erasure: PartOfErasure,
  ) => Promise<ForgetOutcome>
  /** Removes the data of events of the stream `system`. */
  readonly forgetRecords: (sequences: readonly number[]) => Promise<void>
  /** Resolves when read models and archives have lost the data too. */
  readonly settled: () => Promise<void>
}

export interface EraseDeps {
  readonly logs: SearchedLogs
  readonly store: Pick<ErasureStore, 'get' | 'subjectOf' | 'begin' | 'reach' | 'end'>
  readonly writer: ErasureWriter
  /** Whether the log has an event of a type about an erasure. The read models hold all events of earlier writers. */
  readonly isRecorded: (type: 'ErasureStarted' | 'ErasureEnded', erasureId: string) => Promise<boolean>
  /** Selects the streams that the log names as forgotten for an erasure. */
  readonly recordedOf: (streams: readonly string[], erasureId: string) => Promise<ReadonlySet<string>>
  /** The sequences in the last event of an erasure about events of the stream `system`; empty if there is no such event. */
  readonly lastRecordsOf: (erasureId: string) => Promise<readonly number[]>
  /** Resolves when log-ins and refusals that this process has counted are recorded, so that the search finds them. */
  readonly flushed?: () => Promise<void>
  readonly prove: (subject: Subject, erasureId: string) => Promise<Proof>
  /** Called for each step. It throws to stop the erasure, and the next writer continues. */
  readonly onStep?: () => void
  /** How long to wait for found queries to end, milliseconds. @default 10 s */
  readonly waitMs?: number
}

/** How many queries are forgotten at the same time: one rewrite of the archive then removes all of them. */
const AT_ONCE = 25
/** Most queries in a part of the work that is repeated after an interruption. */
const PART = 100
const WAIT_MS = 10_000
const LOOK_AGAIN_MS = 500

/** The event data of a request. */
function startedOf(id: string, { subject, ...request }: ErasureRequest) {
  return { erasureId: id, subjectHash: subject, ...request }
}

/**
 * Carries out an erasure of the table. It continues where an earlier process stopped: it forgets the queries in
 * `working` and the last events of the stream `system` again, and does not record them again.
 * @returns the result, which is stored and recorded
 */
export async function carryOut(deps: EraseDeps, id: string): Promise<ErasureResult> {
  const { store, writer } = deps
  const erasure = (await store.get(id))!
  if (erasure.result && (await deps.isRecorded('ErasureEnded', id))) return erasure.result
  if (await deps.isRecorded('ErasureStarted', id)) await repeatRecords(deps, id)
  else await writer.journal.record('ErasureStarted', startedOf(id, erasure.request))
  const subject = await store.subjectOf(id)
  const scope = { search: searchFor(subject), mentions: erasure.request.mentions }
  await deps.flushed?.()
  const waiting = await forgetFound(deps, erasure, scope)
  await writer.settled()
  const proof = await deps.prove(subject, id)
  const result: ErasureResult = {
    queries: proof.queries,
    records: proof.records,
    waiting: [...waiting],
    searched: proof.locations.length,
    remains: proof.locations.filter(({ found }) => found > 0),
  }
  if (!(await deps.isRecorded('ErasureEnded', id)))
    await writer.journal.record('ErasureEnded', {
      erasureId: id,
      queries: result.queries,
      records: result.records,
      waiting: waiting.length,
      searched: result.searched,
      remains: [...result.remains],
    })
  await store.end(id, result)
  return result
}

/** Searches the logs, and forgets the queries and events that it finds. @returns queries that have not ended */
async function forgetFound(deps: EraseDeps, erasure: StoredErasure, scope: ErasureScope): Promise<readonly string[]> {
  const { id, progress } = erasure
  const waiting = new Set(erasure.waiting)
  const { working } = erasure
  const recorded = working.length === 0 ? new Set<string>() : await deps.recordedOf(working, id)
  await forgetQueries(deps, erasure, working, waiting, recorded)
  for await (const { found, reached, isInNewestLog } of searchLogs(deps.logs, scope, progress)) {
    deps.onStep?.()
    await forgetQueries(deps, erasure, queriesIn(found), waiting)
    const records = found.flatMap(({ event, finding }) => (finding.kind === 'record' ? [event] : []))
    await forgetRecords(deps, erasure, await deps.logs.selectForgettable(records, isInNewestLog))
    await deps.store.reach(id, reached, [...waiting])
  }
  const until = performance.now() + (deps.waitMs ?? WAIT_MS)
  while (waiting.size > 0 && performance.now() < until) {
    deps.onStep?.()
    const again = [...waiting]
    waiting.clear()
    await forgetQueries(deps, erasure, again, waiting)
    if (waiting.size > 0) await sleep(LOOK_AGAIN_MS)
  }
  return [...waiting]
}

function queriesIn(found: readonly FoundEvent[]): readonly string[] {
  return [...new Set(found.flatMap(({ finding }) => (finding.kind === 'query' ? [finding.queryId] : [])))]
}

async function forgetQueries(
  { store, writer, onStep }: EraseDeps,
  { id, request }: StoredErasure,
  streams: readonly string[],
  waiting: Set<string>,
  recorded: ReadonlySet<string> = new Set(),
): Promise<void> {
  const administrator = administratorOf(request)
  for (let from = 0; from < streams.length; from += PART) {
    onStep?.()
    const part = streams.slice(from, from + PART).filter((stream) => !waiting.has(stream))
    await store.begin(id, part)
    const left = [...part]
    const forgetNext = async (): Promise<void> => {
      for (let stream = left.pop(); stream !== undefined; stream = left.pop())
        if (await isOpen(writer, stream, administrator, { erasureId: id, isRecorded: recorded.has(stream) }))
          waiting.add(stream)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, forgetNext))
  }
}

/** Forgets a query. @returns whether it has not ended, so that nothing was done */
async function isOpen(
  writer: ErasureWriter,
  stream: string,
  administrator: Administrator,
  erasure: PartOfErasure,
): Promise<boolean> {
  try {
    return (await writer.forgetQuery(queryOfStream(stream), administrator, erasure)).kind === 'open'
  } catch (error) {
    // Records of this log cannot be rewritten, and the query is not encrypted. The proof finds it.
    if (error instanceof Unforgettable) return false
    throw error
  }
}

/**
 * Repeats the last removal of events of the stream `system` that an interrupted call recorded: the call may have ended
 * before it wrote to the archive.
 */
async function repeatRecords({ writer, lastRecordsOf }: EraseDeps, id: string): Promise<void> {
  const sequences = await lastRecordsOf(id)
  if (sequences.length > 0) await writer.forgetRecords(sequences)
}

/** Removes the data of events of the stream `system`, once an event says why. */
async function forgetRecords(
  { writer }: EraseDeps,
  { id, request }: StoredErasure,
  events: readonly Recorded[],
): Promise<void> {
  const sequences = events.map(({ sequence }) => sequence)
  const [first] = events
  if (!first) return
  await writer.journal.record('DataForgotten', {
    stream: first.stream,
    sequences,
    erasureId: id,
    ...administratorOf(request),
  })
  await writer.forgetRecords(sequences)
}

function administratorOf({ by, originalUser, remoteAddress }: ErasureRequest): Administrator {
  return {
    by,
    ...(originalUser !== undefined && { originalUser }),
    ...(remoteAddress !== undefined && { remoteAddress }),
  }
}
