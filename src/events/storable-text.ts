/** Text that Postgres accepts: no U+0000, no lone surrogates; both become U+FFFD. */
export function storableText(text: string): string {
  return wellFormed(text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text)
}

/** JSON text that `jsonb` accepts: it refuses the escapes of the same characters. */
export function storableJson(value: unknown): string {
  const text = JSON.stringify(value)
  return text.includes('\\u')
    ? // A pair of backslashes is one character of text, no matter what follows it.
      text.replace(/\\\\|\\u(?:0000|d[89a-f][0-9a-f]{2})/g, (escape) => (escape === '\\\\' ? escape : '\\ufffd'))
    : text
}

function wellFormed(text: string): string {
  return LONE_SURROGATE.test(text) ? text.replaceAll(LONE_SURROGATES, '\uFFFD') : text
}

const LONE_SURROGATE = /\p{Surrogate}/u
const LONE_SURROGATES = /\p{Surrogate}/gu
