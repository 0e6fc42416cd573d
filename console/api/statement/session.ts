/** The parts of a session that statements of the console use and change. */
export interface StatementSession {
  readonly catalog: string | undefined
  readonly schema: string | undefined
  readonly properties: Readonly<Record<string, string>>
  /** Names the client in the record of its queries. @default SOURCE */
  readonly source?: string
}

/** A session without a catalog and without properties. */
export const EMPTY_SESSION: StatementSession = { catalog: undefined, schema: undefined, properties: {} }

/** The client's name in the record of its queries. */
export const SOURCE = 'quipu-console'

/** Statements of the console itself have a name of their own, so that the list of the user's statements leaves them out. */
export function sourceName(part: string | undefined): Pick<StatementSession, 'source'> {
  return part === undefined ? {} : { source: `${SOURCE}/${part}` }
}

export function sessionHeaders({
  catalog,
  schema,
  properties,
  source = SOURCE,
}: StatementSession): Record<string, string> {
  const set = Object.entries(properties).map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
  return {
    'x-engine-source': source,
    'x-engine-time-zone': Intl.DateTimeFormat().resolvedOptions().timeZone,
    ...(catalog === undefined ? {} : { 'x-engine-catalog': headerText(catalog) }),
    ...(catalog === undefined || schema === undefined ? {} : { 'x-engine-schema': headerText(schema) }),
    ...(set.length === 0 ? {} : { 'x-engine-session': headerText(set.join(',')) }),
  }
}

/** The session after an answer: USE, SET SESSION and RESET SESSION come as headers. */
export function changedSession(session: StatementSession, headers: Headers): StatementSession {
  const get = (name: string) => {
    const value = headers.get(`x-engine-${name}`)
    return value === null ? undefined : textOfHeader(value)
  }
  const properties = { ...session.properties }
  for (const pair of list(get('set-session'))) {
    const at = pair.indexOf('=')
    if (at > 0) properties[pair.slice(0, at)] = decodeURIComponent(pair.slice(at + 1).replaceAll('+', ' '))
  }
  for (const name of list(get('clear-session'))) delete properties[name]
  return {
    ...session,
    catalog: get('set-catalog') ?? session.catalog,
    schema: get('set-schema') ?? session.schema,
    properties,
  }
}

function list(text: string | undefined): readonly string[] {
  return text === undefined ? [] : text.split(',').map((one) => one.trim())
}

/** Browsers send a header's characters as single bytes, and the server reads the bytes as UTF-8. */
function headerText(text: string): string {
  return String.fromCharCode(...new TextEncoder().encode(text))
}

function textOfHeader(text: string): string {
  return new TextDecoder().decode(Uint8Array.from(text, (character) => character.charCodeAt(0)))
}
