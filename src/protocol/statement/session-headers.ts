import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { headerFamilies, type QuerySession } from '../../coordinator/query/stream/events.ts'
import type { Identity } from '../../security/authorization.ts'
import { headerText, readHeaderText } from '../../shared/header-text.ts'
import { isStorableName, nameBytes } from '../../shared/stored-name.ts'
import { HttpProblem } from '../edge/problem.ts'
import { remoteAddressOf } from '../edge/client-connection.ts'

export type HeaderFamily = (typeof headerFamilies)[number]

const PREFIXES: Readonly<Record<HeaderFamily, string>> = {
  Engine: 'x-engine-',
  Trino: 'x-trino-',
  Presto: 'x-presto-',
}

/**
 * The changes that a client must apply to its session, as headers of its family; a name may occur several times. Names
 * are sent as UTF-8, and clients return them unchanged. Values of properties and prepared statements come form-encoded,
 * as in Trino.
 */
export function answerHeaders(
  family: HeaderFamily,
  sent: readonly { readonly header: string; readonly value: string }[],
): Record<string, string[]> {
  const headers: Record<string, string[]> = {}
  for (const { header, value } of sent) (headers[`X-${family}-${header}`] ??= []).push(headerText(value))
  return headers
}

/**
 * The family of a POST: the one whose prefix occurs.
 * @throws HttpProblem 400 when more than one occurs
 */
export function headerFamily(headers: IncomingHttpHeaders): HeaderFamily {
  const found = headerFamilies.filter((family) =>
    Object.keys(headers).some((name) => name.startsWith(PREFIXES[family])),
  )
  if (found.length > 1) throw new HttpProblem(400, `Both ${found.join(' and ')} headers detected`)
  return found[0] ?? 'Engine'
}

/** Limits a text, since the whole session is stored with the query. */
function limited(text: string, what: string, maxBytes: number = nameBytes.other): string {
  if (!isStorableName(text, maxBytes)) throw new HttpProblem(400, `${what} is longer than ${maxBytes} bytes`)
  return text
}

/** A whole header without a limit: its parts are limited after they are split. */
function wholeHeader({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name]
  // Node has cut off the spaces around it. `trim` must not be used: it would take a byte of a UTF-8 letter for another
  // kind of space.
  const text = Array.isArray(value) ? value.join(',') : value
  return text ? readHeaderText(text) : undefined
}

/** Users that a request names, not verified. */
export interface ClaimedUsers {
  readonly user: string | undefined
  readonly originalUser: string | undefined
}

/**
 * Reads the users that a request names.
 * @throws HttpProblem 400 for headers of two families, or a name that is too long
 */
export function claimedUsers(request: IncomingMessage): ClaimedUsers {
  const family = headerFamily(request.headers)
  const get = (suffix: string): string | undefined => {
    const text = wholeHeader(request, PREFIXES[family] + suffix)
    return text === undefined ? undefined : limited(text, `X-${family}-${titled(suffix)}`, nameBytes.user)
  }
  return { user: get('user'), originalUser: get('original-user') }
}

/** The user that a statement runs as. */
export type SessionIdentity = Pick<Identity, 'user' | 'principal' | 'originalUser' | 'groups'>

/**
 * The session of a POST, from the headers of its family.
 * @throws HttpProblem 400 for a header of another form, or a name that is longer than `nameBytes`
 */
export function sessionFromHeaders(
  request: IncomingMessage,
  family: HeaderFamily,
  { user, groups, principal, originalUser }: SessionIdentity,
  defaultTimeZone: string,
): QuerySession {
  const prefix = PREFIXES[family]
  const whole = (suffix: string): string | undefined => wholeHeader(request, prefix + suffix)
  const get = (suffix: string): string | undefined => {
    const text = whole(suffix)
    return text === undefined ? undefined : limited(text, `X-${family}-${titled(suffix)}`)
  }
  const catalog = get('catalog')?.toLowerCase()
  const schema = get('schema')?.toLowerCase()
  if (schema !== undefined && catalog === undefined) throw new HttpProblem(400, 'Schema is set but catalog is not')
  const transactionId = get('transaction-id')
  if (transactionId !== undefined && transactionId.toUpperCase() !== 'NONE' && !UUID.test(transactionId))
    throw new HttpProblem(400, `Invalid UUID string: ${transactionId}`)
  const userAgent = request.headers['user-agent']
  const optional = {
    principal,
    originalUser,
    source: get('source'),
    catalog,
    schema,
    path: get('path'),
    language: get('language'),
    clientInfo: get('client-info'),
    traceToken: get('trace-token'),
    userAgent: userAgent === undefined ? undefined : limited(readHeaderText(userAgent), 'User-Agent'),
    transactionId: transactionId?.toUpperCase() === 'NONE' ? 'NONE' : transactionId,
  }
  return {
    user,
    groups: [...groups],
    roles: pairs(whole('role'), `X-${family}-Role`),
    timeZone: get('time-zone') ?? defaultTimeZone,
    properties: pairs(whole('session'), `X-${family}-Session`),
    preparedStatements: preparedStatements(whole('prepared-statement'), family),
    capabilities: tags(whole('client-capabilities'), `X-${family}-Client-Capabilities`),
    clientTags: tags(whole('client-tags'), `X-${family}-Client-Tags`),
    resourceEstimates: resourceEstimates(whole('resource-estimate'), family),
    remoteUserAddress: remoteAddressOf(request) ?? '',
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined)),
  }
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** The most properties, prepared statements or tags. */
const MOST_ENTRIES = 1000

/**
 * Splits a list. It stops at the first entry too many, so that a header full of entries costs no more than the first
 * ones.
 */
function commaList(text = ''): string[] {
  const entries: string[] = []
  for (let from = 0; from <= text.length;) {
    const comma = text.indexOf(',', from)
    const end = comma < 0 ? text.length : comma
    const entry = text.slice(from, end).trim()
    from = end + 1
    if (entry === '') continue
    if (entries.length === MOST_ENTRIES) throw new HttpProblem(400, `A header has more than ${MOST_ENTRIES} entries`)
    entries.push(entry)
  }
  return entries
}

function tags(text: string | undefined, header: string): string[] {
  return commaList(text).map((tag) => limited(tag, `A name in ${header}`))
}

/** `client-info` → `Client-Info`. */
function titled(suffix: string): string {
  return suffix.replaceAll(/(^|-)[a-z]/g, (start) => start.toUpperCase())
}

/** `name=urlenc(value)`, joined by commas or one header a pair. */
function pairs(text: string | undefined, header: string): Record<string, string> {
  const found: Record<string, string> = {}
  for (const entry of commaList(text)) {
    const at = entry.indexOf('=')
    if (at < 1) throw new HttpProblem(400, `Invalid ${header} header`)
    const name = limited(entry.slice(0, at).trim(), `A name in ${header}`)
    found[name] = limited(formDecode(entry.slice(at + 1).trim(), header), `A value in ${header}`)
  }
  return found
}

function formDecode(text: string, header: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw new HttpProblem(400, `Invalid ${header} header`)
  }
}

function preparedStatements(text: string | undefined, family: HeaderFamily): Record<string, string> {
  const header = `X-${family}-Prepared-Statement`
  const found: Record<string, string> = {}
  for (const entry of commaList(text)) {
    const at = entry.indexOf('=')
    if (at < 1) throw new HttpProblem(400, `Invalid ${header} header`)
    // The value is the text of a statement, limited only by the size of all headers together.
    found[limited(formDecode(entry.slice(0, at), header), `A name in ${header}`)] = formDecode(
      entry.slice(at + 1),
      header,
    )
  }
  return found
}

const ESTIMATES = new Set(['EXECUTION_TIME', 'CPU_TIME', 'PEAK_MEMORY'])

function resourceEstimates(text: string | undefined, family: HeaderFamily): Record<string, string> {
  const found = pairs(text, `X-${family}-Resource-Estimate`)
  for (const name of Object.keys(found))
    if (!ESTIMATES.has(name)) throw new HttpProblem(400, `Unsupported resource name ${name}`)
  return found
}

/**
 * The user of Basic authentication where authentication is not configured: a name without a password.
 * @throws HttpProblem 401 when a password comes with it; 400 for a name that is too long
 */
export function basicUser({ headers }: IncomingMessage): string | undefined {
  const match = /^Basic ([A-Za-z0-9+/=]+)$/.exec(headers.authorization ?? '')
  if (!match) return undefined
  const [user, ...password] = Buffer.from(match[1]!, 'base64').toString('utf8').split(':')
  if (password.join(':') !== '')
    throw new HttpProblem(401, 'Password not allowed for insecure authentication', {
      'www-authenticate': 'Basic realm="Quipu"',
    })
  return user ? limited(user, 'The user name', nameBytes.user) : undefined
}
