import type { QuerySession } from '../coordinator/query/events.ts'
import { REPLAY_SOURCE } from './replay-source.ts'

/** What of a session goes into headers. */
export type PostedSession = Pick<
  QuerySession,
  | 'catalog'
  | 'schema'
  | 'path'
  | 'timeZone'
  | 'language'
  | 'properties'
  | 'preparedStatements'
  | 'capabilities'
  | 'clientTags'
>

/**
 * The headers, without their prefix, that put a statement into the session it was posted in.
 * @param user as whom it is run
 */
export function headersOf(session: PostedSession, user: string, queryId: string): Readonly<Record<string, string>> {
  const { catalog, schema, path, timeZone, language } = session
  const headers: Record<string, string | undefined> = {
    User: user,
    Source: REPLAY_SOURCE,
    'Client-Info': `replay of ${queryId}`,
    Catalog: catalog,
    Schema: schema,
    Path: path,
    'Time-Zone': timeZone,
    Language: language,
    Session: pairs(session.properties),
    'Prepared-Statement': pairs(session.preparedStatements),
    'Client-Capabilities': listed(session.capabilities),
    'Client-Tags': listed(session.clientTags),
  }
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, asHeader(value)]])),
  )
}

function pairs(values: Readonly<Record<string, string>>): string | undefined {
  return listed(Object.entries(values).map(([name, value]) => `${encoded(name)}=${encoded(value)}`))
}

function listed(values: readonly string[]): string | undefined {
  return values.length === 0 ? undefined : values.join(',')
}

/** Form-encoded, as Trino's clients send them. */
function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll('%20', '+')
}

/** UTF-8, whose bytes Node sends as they are. */
function asHeader(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}
