/** Default number of remembered answers, for users with their groups and for names. */
const MOST_REMEMBERED = 1_000

/** Remembers the answers of a function. Beyond `most` answers the oldest is dropped. */
export function remembering<A, R>(
  keyOf: (asked: A) => string,
  answer: (asked: A) => R,
  most = MOST_REMEMBERED,
): (asked: A) => R {
  const known = new Map<string, R>()
  return (asked) => {
    const key = keyOf(asked)
    if (known.has(key)) return known.get(key)!
    const found = answer(asked)
    if (known.size >= most) known.delete(known.keys().next().value!)
    known.set(key, found)
    return found
  }
}
