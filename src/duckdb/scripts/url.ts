import { invalidArgument, type ScalarFunction } from './scalar-function.ts'

/** The parts as written in the URL. */
interface Parts {
  readonly protocol: string
  readonly authority: string
  readonly path: string
  readonly query: string | undefined
  readonly fragment: string
}

// As in java.net.URI: a text with illegal characters or broken escapes is not a URI; letters outside of ASCII are
// allowed.
const ILLEGAL = /[\p{Z}"<>\\^`{|}\u0000-\u001f\u007f-\u009f]|%(?![0-9a-fA-F]{2})/u
const PLAIN = /^[\w.~:/?#@!$&'()*+,;=-]*$/
const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*$/
const SERVER = /^(?:[^@]*@)?(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]*)(?::(\d*))?$/

function parse(url: string): Parts | undefined {
  const isPlain = PLAIN.test(url)
  if (!isPlain && ILLEGAL.test(url)) return undefined
  const hash = url.indexOf('#')
  if (hash >= 0 && url.includes('#', hash + 1)) return undefined
  const fragment = hash < 0 ? '' : url.slice(hash + 1)
  const whole = hash < 0 ? url : url.slice(0, hash)
  const mark = whole.indexOf('?')
  const query = mark < 0 ? undefined : whole.slice(mark + 1)
  const before = mark < 0 ? whole : whole.slice(0, mark)
  const colon = schemeEnd(before)
  const start = colon + 1
  let behind = start
  if (before.startsWith('//', start)) {
    const slash = before.indexOf('/', start + 2)
    behind = slash < 0 ? before.length : slash
  }
  const protocol = colon < 0 ? '' : before.slice(0, colon)
  const authority = behind === start ? '' : before.slice(start + 2, behind)
  const path = before.slice(behind)
  if (!isPlain && /[[\]]/.test(path + fragment)) return undefined
  if (protocol !== '' && authority === '' && path === '' && (query ?? '') === '') return undefined
  // mailto:a@b is opaque: it has neither path nor query.
  const isOpaque =
    protocol !== '' && authority === '' && !path.startsWith('/') && !url.startsWith('//', protocol.length + 1)
  return isOpaque
    ? { protocol, authority, path: '', query: undefined, fragment }
    : { protocol, authority, path, query, fragment }
}

/** The index of the colon behind a scheme; -1 when there is no scheme. */
function schemeEnd(text: string): number {
  const colon = text.indexOf(':')
  return colon > 0 && SCHEME.test(text.slice(0, colon)) ? colon : -1
}

/** Decodes percent escapes as UTF-8; bad bytes are replaced. */
function decoded(text: string): string {
  if (!text.includes('%')) return text
  return text.replaceAll(/(?:%[0-9a-fA-F]{2})+/g, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'))
}

const LARGEST_PORT = 2 ** 31 - 1

/** Host and port; undefined when the authority is not a server, for example with a port beyond Java's int. */
function serverOf({ authority }: Parts): { readonly host: string; readonly port: string | undefined } | undefined {
  const [, host = '', port] = SERVER.exec(authority) ?? []
  return Number(port ?? 0) > LARGEST_PORT ? undefined : { host, port }
}

const partsRead: Readonly<Record<string, (parts: Parts) => string | null>> = {
  protocol: ({ protocol }) => protocol,
  host: (parts) => serverOf(parts)?.host ?? '',
  port: (parts) => serverOf(parts)?.port || null,
  path: ({ path }) => decoded(path),
  query: ({ query }) => decoded(query ?? ''),
  fragment: ({ fragment }) => decoded(fragment),
}

function part(url: string, name: string): string | null {
  const parts = parse(url)
  return parts === undefined ? null : partsRead[name]!(parts)
}

function parameter(url: string, name: string): string | null {
  const query = parse(url)?.query
  if (query === undefined) return null
  for (const pair of query.split('&')) {
    const at = pair.indexOf('=')
    if ((at < 0 ? pair : pair.slice(0, at)) === name) return at < 0 ? '' : decoded(pair.slice(at + 1))
  }
  return null
}

function decode(text: string): string {
  const broken = /%(?![0-9a-fA-F]{2})/.exec(text)
  if (broken !== null) {
    throw invalidArgument('URLDecoder: Illegal hex characters in escape (%) pattern')
  }
  return decoded(text.replaceAll('+', ' '))
}

export const urlScripts: readonly ScalarFunction[] = [
  { name: 'u_url_part', parameters: ['VARCHAR', 'VARCHAR'], returns: 'VARCHAR', call: part },
  { name: 'u_url_parameter', parameters: ['VARCHAR', 'VARCHAR'], returns: 'VARCHAR', call: parameter },
  { name: 'u_url_decode', parameters: ['VARCHAR'], returns: 'VARCHAR', call: decode },
]
