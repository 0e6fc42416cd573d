import { createHash } from 'node:crypto'
import { z } from 'zod'
import { recordedDigestSchema, type RecordedDigest } from '../coordinator/query/stream/events.ts'
import {
  recordedStatement,
  snapshotsIn,
  listedEventSchema,
  type ReadStatement,
  type ListedEvent,
} from './recorded-statement.ts'

/** A recorded query as lists show it. */
export interface ListedQuery {
  readonly queryId: string
  /** ISO UTC. */
  readonly createdAt: string
  /** The shape and the CPU time, if the list comes from the history. */
  readonly fingerprint?: string | undefined
  readonly cpuMs?: number | undefined
}

export interface ReplayFilter {
  /** ISO times: created at or after, created before. */
  readonly since?: string | undefined
  readonly until?: string | undefined
  readonly user?: string | undefined
  readonly source?: string | undefined
  /** Share of all queries, chosen by their ids, e.g. 0.05. The same queries each time. */
  readonly sample?: number | undefined
  readonly queryIds?: readonly string[] | undefined
  /** SQL: a condition over `system.history.queries`. */
  readonly where?: string | undefined
}

/** Sends a GET to the server with the record. @throws Error with one line unless the status is 200 */
export type Get = (target: string) => Promise<{ readonly text: string; readonly link: string | undefined }>

/** The source of the replays' own queries. They are in the record too, and are replayed only on request. */
export const REPLAY_SOURCE = 'quipu replay'

const listedSchema = z.array(
  z.object({
    queryId: z.string(),
    session: z.object({ source: z.string().optional() }),
    queryStats: z.object({ createTime: z.iso.datetime() }),
  }),
)

/** The queries that the filter selects, newest first as the server lists them. */
export async function* listQueries(get: Get, filter: ReplayFilter): AsyncGenerator<ListedQuery> {
  if (filter.queryIds) {
    // Their times are read later, with their events.
    for (const queryId of filter.queryIds) yield { queryId, createdAt: '' }
    return
  }
  const parameters = new URLSearchParams({ limit: '1000', since: filter.since ?? '1970-01-01T00:00:00Z' })
  if (filter.user !== undefined) parameters.set('user', filter.user)
  for (let target: string | undefined = `/v1/query?${parameters}`; target !== undefined;) {
    const { text, link } = await get(target)
    for (const { queryId, session, queryStats } of listedSchema.parse(JSON.parse(text))) {
      const listed = { queryId, createdAt: queryStats.createTime }
      if (isMeant(listed, session.source, filter)) yield listed
    }
    const next = link && /<([^>]+)>; rel="next"/.exec(link)?.[1]
    const url = next === undefined || next === '' ? undefined : new URL(next)
    target = url && `${url.pathname}${url.search}`
  }
}

/** Applies the conditions that the server does not check. */
export function isMeant(
  { queryId, createdAt }: ListedQuery,
  source: string | undefined,
  filter: ReplayFilter,
): boolean {
  if (filter.until !== undefined && Date.parse(createdAt) >= Date.parse(filter.until)) return false
  if (!isMeantSource(source, filter.source)) return false
  return filter.sample === undefined || isInSample(queryId, filter.sample)
}

/** Whether the program of a statement is the selected one. If none is selected, all programs but replays are meant. */
export function isMeantSource(source: string | undefined, selected: string | undefined): boolean {
  return selected === undefined ? source !== REPLAY_SOURCE : source === selected
}

/** Whether a query is in a sample. Depends only on its id. @param share from 0 to 1 */
export function isInSample(queryId: string, share: number): boolean {
  return createHash('sha256').update(queryId).digest().readUInt32BE() / 2 ** 32 < share
}

/** How many events are read of a query. The first ones hold the statement and its plan. */
const FIRST_EVENTS = 20

/** @throws Error with one line when the server does not show it */
export async function readStatement(get: Get, queryId: string, types?: ReadonlySet<string>): Promise<ReadStatement> {
  return recordedStatement(queryId, await firstEvents(get, queryId), types)
}

/**
 * The snapshots that a query of this server read, by table; none if the server does not report them, as Trino does not.
 */
export async function readSnapshots(get: Get, queryId: string): Promise<ReadonlyMap<string, string>> {
  try {
    return snapshotsIn(await firstEvents(get, queryId))
  } catch {
    return new Map()
  }
}

/** The digest of a query's result; undefined if the server has none, or does not show it to the replay's user. */
export async function readDigest(get: Get, queryId: string): Promise<RecordedDigest | undefined> {
  try {
    const { text } = await get(`/v1/query/${encodeURIComponent(queryId)}/digest`)
    return recordedDigestSchema.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}

async function firstEvents(get: Get, queryId: string): Promise<readonly ListedEvent[]> {
  const { text } = await get(`/v1/query/${encodeURIComponent(queryId)}/events?limit=${FIRST_EVENTS}`)
  return z.array(listedEventSchema).parse(JSON.parse(text))
}
