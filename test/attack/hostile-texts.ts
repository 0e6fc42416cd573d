import type { Random } from '../chaos/random.ts'

/** Generators of texts that break careless code. Each text has only the characters that its use allows. */
export interface HostileTexts {
  /** A text for a statement: any characters except U+0000 and halves of surrogate pairs. */
  statement(): string
  /** A text for JSON: it may also have U+0000 and halves of surrogate pairs. */
  json(): string
  /** A line for a header value, in UTF-8 without control characters. */
  header(): string
  /** Random bytes; most are not valid UTF-8. */
  bytes(most: number): Buffer
  /** A text for a path or a query parameter, percent-encoded or not. */
  segment(): string
}

const templateMarks = [
  '$1',
  '$2',
  '$3',
  '$E',
  '$F',
  '$R',
  '$T1',
  '$D',
  '$O',
  '$N',
  '$&',
  '$`',
  "$'",
  '$$',
  '$0',
  '${1+1}',
  '$s0',
  '"$q"',
  '@x',
  '@z',
  '@o',
  '@1',
  '{}',
  '{0}',
  '{{7*7}}',
  '%s',
  '%1$s',
  '%n',
  '%%',
  ':name',
  '?1',
  '?',
  '#{1}',
  '<%= 1 %>',
  '\\0',
  '\\1',
  '\\n',
  '\\x00',
  '\\u0000',
  '\\',
  '\\\\',
  '&amp;',
  '<script>alert(1)</script>',
  '${jndi:ldap://x}',
] as const

const quotes = [
  "'",
  "''",
  '"',
  '""',
  '`',
  '$$',
  '$a$',
  "E'\\''",
  "\\'",
  "U&'\\0041'",
  "X'00'",
  '--',
  '-- \n',
  '/*',
  '*/',
  '/**/',
  ';',
  "';--",
  "' OR '1'='1",
  '"; DROP TABLE queries; --',
  '$$||$$',
  "')",
  '")',
  '))',
  "'||'",
  '[',
  ']',
  '(',
  ')',
  ',',
] as const

const names = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'null',
  'undefined',
  'NaN',
  'true',
  'select',
  'current_user',
  '../../../etc/passwd',
  '..%2f..%2f',
  '/dev/zero',
  'file:///etc/passwd',
  'http://127.0.0.1:1/',
  'c:\\con',
  '.',
  '..',
  '~',
  'rowid',
  'c0',
  'row',
  'information_schema',
  'main',
  'pg_catalog',
  'duckdb_settings()',
  'read_text',
  'query_table',
] as const

const lines = ['\r\n', '\n', '\r', '\u2028', '\u2029', '\u0085', '\t', '\v', '\f', ' ', '\u00a0', '\u3000'] as const
/** Joiners, direction marks, byte order marks, tags, noncharacters and unusual letters. */
const odd = [
  '\u200b',
  '\u200d',
  '\u202e',
  '\u2066',
  '\ufeff',
  '\ufffd',
  '\ufffe',
  '\uffff',
  '\u0301'.repeat(40),
  '\u{e0001}',
  '\u{1fffe}',
  '\u{10ffff}',
  '\u{f0000}',
  '\u{20000}',
  '👨‍👩‍👧‍👦',
  '日本語',
  'ſ',
  'İ',
  'ß',
  'ǆ',
  'ﬃ',
  '①',
  '𝒳',
] as const
const controls = ['\u0001', '\u0007', '\b', '\u001b[2J', '\u001f', '\u007f', '\u0080', '\u009f'] as const
const numbers = [
  '0',
  '-0',
  '-1',
  '1e400',
  '9223372036854775808',
  '99999999999999999999',
  '0x7f',
  '1_000',
  '٣',
  '.',
  '1e-400',
] as const

/** Replaces halves of surrogate pairs by U+FFFD, as the encoding to UTF-8 does. */
export function wellFormed(text: string): string {
  return Buffer.from(text, 'utf8').toString('utf8')
}

/**
 * @param canary the path of a file that no client may read
 */
export function createHostileTexts(random: Random, canary: string): HostileTexts {
  const reads = [
    `read_text('${canary}')`,
    `' || (SELECT content FROM read_text('${canary}')) || '`,
    `' || (SELECT content FROM read_text($$$$${canary}$$$$)) || '`,
    `$E') OVER (PARTITION BY ' || (SELECT content FROM read_text($$${canary}$$)) || '`,
    `'), (SELECT content FROM read_text('${canary}')), ('`,
    `"; COPY (SELECT 1) TO '${canary}.out'; --`,
    `'${canary}'`,
  ] as const

  /** A random code point of any plane, except halves of surrogate pairs. */
  function character(): string {
    const plane = random.chance(0.4) ? 0 : random.whole(0, 16)
    for (;;) {
      const code = plane * 0x10000 + random.whole(plane === 0 ? 1 : 0, 0xffff)
      if (code < 0xd800 || code > 0xdfff) return String.fromCodePoint(code)
    }
  }

  function piece(): string {
    const kind = random.whole(0, 10)
    if (kind <= 1) return random.pick(templateMarks)
    if (kind <= 3) return random.pick(quotes)
    if (kind === 4) return random.pick(names)
    if (kind === 5) return random.pick(lines)
    if (kind === 6) return random.pick(odd)
    if (kind === 7) return random.pick(controls)
    if (kind === 8) return random.pick(numbers)
    if (kind === 9) return random.pick(reads)
    return Array.from({ length: random.whole(1, 12) }, character).join('')
  }

  function statement(): string {
    const whole = Array.from({ length: random.whole(1, 5) }, piece).join(random.chance(0.3) ? 'a' : '')
    return wellFormed(whole.replaceAll('\0', ''))
  }

  return {
    statement,
    json() {
      const text = statement()
      if (random.chance(0.2)) return `${text}\0`
      if (random.chance(0.2)) return `\ud800${text}\udc00\udfff`
      return text
    },
    header: () =>
      statement()
        .replaceAll(/[\u0000-\u001f\u007f]/gu, '_')
        .trim() || '_',
    bytes: (most) => Buffer.from(Array.from({ length: random.whole(1, most) }, () => random.whole(0, 255))),
    segment() {
      const text = statement()
      const kind = random.whole(0, 3)
      if (kind === 0) return encodeURIComponent(text)
      if (kind === 1)
        return random.pick(['%00', '%', '%zz', '%c0%af', '%ed%a0%80', '..;', '%2e%2e%2f', '%0d%0aX:%20y', '//'])
      if (kind === 2) return random.pick(names).replaceAll(/[^\x21-\x7e]/g, '_')
      return encodeURIComponent(text.repeat(random.pick([1, 20, 300]))).slice(0, 30_000)
    },
  }
}
