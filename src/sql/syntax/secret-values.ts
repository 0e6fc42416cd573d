/** What was taken out of a text as a secret, to be found again where it stands elsewhere. */
export interface SecretValues {
  readonly isEmpty: boolean
  /** Is the text one of them as a whole? In any case. */
  isOne(text: string): boolean
  /** Does the text hold one, but for short ones? */
  holdsOne(text: string): boolean
  /** The text without them. */
  takenOutOf(text: string): string
}

/** What stands where a secret was. */
export const REDACTED = '***'

/** A shorter text turns up everywhere by accident: it is looked for in quotes alone. */
const SHORT = 3
/** So many are looked for within other texts, all of them as whole words and quoted texts: of a long list nobody writes one into another. */
const MOST_WITHIN = 32
/** Longer ones are known by their beginning: a search for a long text that repeats itself takes the product of both lengths. */
const BEGINNING = 64

const QUOTED = /'(?:[^']|'')*'|"(?:[^"]|"")*"/g
const PIECES = /'(?:[^']|'')*'|"(?:[^"]|"")*"|[^\s'",;()=<>]+/g
const NOT_ONE_PIECE = /[\s'",;()=<>]/

/**
 * Looks for values in texts, in time that grows with the texts alone: a list of secrets and the texts of its plan may both
 * be as long as a statement.
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
  // The longest first: a part of one must not be left over. Of many, those first that are found in no other way.
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
    takenOutOf(text) {
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
  // Letters whose other case is longer: places differ, so only what is written alike is found.
  const isAlike = lower.length === text.length && lowerValue.length === value.length
  const [place, wanted] = isAlike ? [lower, lowerValue] : [text, value]
  const beginning = wanted.slice(0, BEGINNING)
  let cleaned = ''
  let from = 0
  for (let at = place.indexOf(beginning); at >= 0; at = place.indexOf(beginning, from)) {
    cleaned += text.slice(from, at) + REDACTED
    from = at + beginning.length
    while (from - at < wanted.length && place.charCodeAt(from) === wanted.charCodeAt(from - at)) from++
  }
  return from === 0 ? text : cleaned + text.slice(from)
}
