/** The secrets removed from a text, used to find them in other texts. */
export interface SecretValues {
  readonly isEmpty: boolean
  /** Whether the whole text is a secret, ignoring case. */
  isOne(text: string): boolean
  /** Whether the text contains a secret; short secrets are ignored. */
  holdsOne(text: string): boolean
  /** The text with the secrets replaced. */
  redactedIn(text: string): string
}

/** The replacement for a secret. */
export const REDACTED = '***'

/** Shorter values occur everywhere by accident, so they are searched only in quotes. */
const SHORT = 3
/**
 * The number of secrets that are searched inside other words. All secrets are searched as whole words and quoted texts.
 * With a long list of secrets it is unlikely that one is part of another text.
 */
const MOST_WITHIN = 32
/**
 * Longer secrets are found by their beginning: searching a long repetitive text takes time proportional to the product
 * of both lengths.
 */
const BEGINNING = 64

const QUOTED = /'(?:[^']|'')*'|"(?:[^"]|"")*"/g
const PIECES = /'(?:[^']|'')*'|"(?:[^"]|"")*"|[^\s'",;()=<>]+/g
const NOT_ONE_PIECE = /[\s'",;()=<>]/

/**
 * Searches for secrets in texts, in time linear in the texts. Both the list of secrets and the texts of a plan may be
 * as long as a statement.
 */
export function createSecretValues(values: readonly string[]): SecretValues {
  const all = new Set<string>()
  const long = new Map<string, string>()
  for (const value of values) {
    const lower = value.toLowerCase()
    if (lower !== '') all.add(lower)
    if (lower.length >= SHORT) long.set(lower, value)
  }
  const few = all.size <= MOST_WITHIN
  // The longest secret first, so that no part of it remains. With many secrets, those first that are not found as a
  // word.
  const order = ([a]: readonly [string, string], [b]: readonly [string, string]): number =>
    (few ? 0 : Number(NOT_ONE_PIECE.test(b)) - Number(NOT_ONE_PIECE.test(a))) || b.length - a.length
  const within = [...long].toSorted(order).slice(0, MOST_WITHIN)
  const hasShort = all.size > long.size

  const withoutPieces = (text: string): string =>
    text.replace(few ? QUOTED : PIECES, (piece) => {
      const { quote, inner } = partsOf(piece)
      const isSecret = all.has(inner.toLowerCase()) && (quote !== '' || inner.length >= SHORT)
      return isSecret ? quote + REDACTED + quote : piece
    })

  function isAmongPieces(text: string): boolean {
    for (const [piece] of text.matchAll(PIECES)) {
      const { inner } = partsOf(piece)
      if (inner.length >= SHORT && all.has(inner.toLowerCase())) return true
    }
    return false
  }

  return {
    isEmpty: all.size === 0,
    isOne: (text) => all.has(text.toLowerCase()),
    holdsOne(text) {
      const lower = text.toLowerCase()
      return within.some(([wanted]) => lower.includes(wanted.slice(0, BEGINNING))) || (!few && isAmongPieces(text))
    },
    redactedIn(text) {
      const rest = hasShort || !few ? withoutPieces(text) : text
      return within.reduce((cleaned, [lower, value]) => without(cleaned, lower, value), rest)
    },
  }
}

function partsOf(piece: string): { readonly quote: string; readonly inner: string } {
  const quote = /^['"]/.exec(piece)?.[0] ?? ''
  return { quote, inner: quote === '' ? piece : piece.slice(1, -1).replaceAll(quote + quote, quote) }
}

function without(text: string, lowerValue: string, value: string): string {
  const lower = text.toLowerCase()
  // The length of some letters changes with their case. Positions then differ, so only the exact case is found.
  const isAlike = lower.length === text.length && lowerValue.length === value.length
  const [searched, wanted] = isAlike ? [lower, lowerValue] : [text, value]
  const beginning = wanted.slice(0, BEGINNING)
  let cleaned = ''
  let from = 0
  for (let at = searched.indexOf(beginning); at >= 0; at = searched.indexOf(beginning, from)) {
    cleaned += text.slice(from, at) + REDACTED
    from = at + beginning.length
    while (from - at < wanted.length && searched.charCodeAt(from) === wanted.charCodeAt(from - at)) from++
  }
  return from === 0 ? text : cleaned + text.slice(from)
}
