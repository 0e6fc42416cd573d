import { clusterStreamPrefix } from '../coordinator/clusters/events.ts'
import { nodeStreamPrefix } from '../coordinator/nodes/events.ts'
import { decodeQueryEvent } from '../coordinator/query/stream/decode-event.ts'
import { isPersonalEvent, systemStream } from '../coordinator/system/events.ts'
import { storedJson } from '../events/envelope.ts'
import type { Recorded } from '../events/event-log.ts'
import { clientApp } from '../readmodels/queries/client-app.ts'
import { queryOfStream, type QueryId } from '../shared/ids.ts'
import type { SubjectSearch } from './subject.ts'

/**
 * The treatment of an event that contains the subject of an erasure.
 * `query`: the data of the whole query is removed. `record`: the data of this event is removed. `mention`: a query of
 * another user contains the name. `kept`: the event stays, because it proves what happened to the log or which rules
 * were in force, or because it is about the act of another user.
 */
export type SubjectFinding =
  | { readonly kind: 'query' | 'mention'; readonly queryId: QueryId }
  | { readonly kind: 'record' | 'kept'; readonly type: string; readonly stream: string; readonly sequence: number }

export interface ErasureScope {
  readonly search: SubjectSearch
  /** Whether queries that only mention a user, and recorded texts of rule files, are erased too. */
  readonly mentions: boolean
}

/** @returns undefined for an event without the subject, and for forgotten data */
export function classify(event: Recorded, scope: ErasureScope): SubjectFinding | undefined {
  const { search, mentions } = scope
  if (event.forgotten || !search.isIn(storedJson({ enc: event.enc, data: event.stored }))) return undefined
  const { stream, sequence, type } = event
  const user = 'user' in search.subject ? search.subject.user : undefined
  if (stream === systemStream) {
    const isOwn = type !== 'FileKept' && (user === undefined || namesPerson(event.data, user))
    const isRemoved = isPersonalEvent(stream, type) && (mentions || isOwn)
    return { kind: isRemoved ? 'record' : 'kept', type, stream, sequence }
  }
  if (stream.startsWith(nodeStreamPrefix) || stream.startsWith(clusterStreamPrefix))
    return { kind: 'kept', type, stream, sequence }
  const isOwn = user === undefined || (type === 'QueryCreated' && isQueryOf(event, user))
  return { kind: isOwn || mentions ? 'query' : 'mention', queryId: queryOfStream(stream) }
}

/** Fields with the name of the person of an act. */
const PERSON_FIELDS = ['user', 'principal', 'originalUser', 'by'] as const

function namesPerson(data: unknown, user: string): boolean {
  const { examples, filter, ...fields } = (data ?? {}) as Readonly<Record<string, unknown>>
  const names = [
    (filter as { readonly user?: unknown } | undefined)?.user,
    ...PERSON_FIELDS.map((field) => fields[field]),
  ]
  return [...names, ...(Array.isArray(examples) ? (examples as readonly unknown[]) : [])].some((name) =>
    isSameName(name, user),
  )
}

/** Compares names in the same normal form of Unicode: keyboards and files differ in it. */
function isSameName(name: unknown, user: string): boolean {
  return typeof name === 'string' && name.normalize('NFC') === user.normalize('NFC')
}

/** Whether the event creates a query that runs as a user, was posted by them, or was sent for them by a program. */
function isQueryOf(event: Recorded, user: string): boolean {
  try {
    const decoded = decodeQueryEvent(event)
    if (decoded?.type !== 'QueryCreated') return false
    const { session, sql } = decoded.data
    return namesPerson(session, user) || isSameName(clientApp(sql, session)?.user, user)
  } catch {
    // An event that does not fit its type. It names the user, so its query is erased.
    return true
  }
}
