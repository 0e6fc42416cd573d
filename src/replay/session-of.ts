import type { QuerySession } from '../coordinator/query/stream/events.ts'
import { REPLAY_SOURCE } from './replay-source.ts'

/** The parts of a session that become headers. */
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
 * The headers, without their prefix, that give a statement the session in which it was posted.
 * @param user the user that it runs as
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

/** Form-encodes a text as Trino's clients do. */
function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll('%20', '+')
}

/** A header value whose characters are the bytes of UTF-8: Node sends them unchanged. */
function asHeader(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}
