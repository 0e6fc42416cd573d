/** A type as DuckDB's DESCRIBE writes it: `STRUCT("a b" INTEGER, c DECIMAL(10,2)[])`. */
export type DuckDbType =
  | { readonly kind: 'plain'; readonly name: string }
  | { readonly kind: 'decimal'; readonly precision: number; readonly scale: number }
  | { readonly kind: 'list'; readonly element: DuckDbType }
  | { readonly kind: 'map'; readonly key: DuckDbType; readonly value: DuckDbType }
  | {
      readonly kind: 'struct'
      readonly fields: readonly { readonly name: string; readonly type: DuckDbType }[]
    }
  /** ENUM, UNION and any other type with parentheses; `name` is the part before them. */
  | { readonly kind: 'other'; readonly name: string }

/**
 * Parses the text of a type. A text of an unknown form (structs whose fields have no names) becomes `other`, with the
 * whole text.
 */
export function parseDuckDbType(text: string): DuckDbType {
  try {
    return parsedType(text)
  } catch {
    return { kind: 'other', name: text }
  }
}

/** @throws Error when the text is not a known type */
function parsedType(text: string): DuckDbType {
  let at = 0

  function fail(): never {
    throw new Error(`Not a DuckDB type: ${text}`)
  }
  function skipBlanks(): void {
    while (text[at] === ' ') at++
  }
  function expect(character: string): void {
    skipBlanks()
    if (text[at] !== character) fail()
    at++
  }
  function quoted(quote: string): string {
    let value = ''
    at++
    for (;;) {
      if (at >= text.length) fail()
      if (text[at] === quote) {
        if (text[at + 1] !== quote) break
        at++
      }
      value += text[at++]
    }
    at++
    return value
  }
  function fieldName(): string {
    skipBlanks()
    if (text[at] === '"') return quoted('"')
    const match = /^[^\s",()[\]]+/.exec(text.slice(at))
    if (!match) fail()
    at += match[0].length
    return match[0]
  }
  function skipArguments(): void {
    expect('(')
    for (let depth = 1; depth > 0;) {
      const character = text[at]
      if (character === undefined) fail()
      if (character === "'" || character === '"') quoted(character)
      else {
        if (character === '(') depth++
        if (character === ')') depth--
        at++
      }
    }
  }
  function base(): DuckDbType {
    skipBlanks()
    const match = /^[A-Za-z_][A-Za-z0-9_]*(?: WITH TIME ZONE)?/.exec(text.slice(at))
    if (!match) return fail()
    at += match[0].length
    const name = match[0].toUpperCase()
    if (text[at] !== '(') return { kind: 'plain', name }
    switch (name) {
      case 'DECIMAL': {
        const digits = /^\((\d+),\s*(\d+)\)/.exec(text.slice(at))
        if (!digits) return fail()
        at += digits[0].length
        return { kind: 'decimal', precision: Number(digits[1]), scale: Number(digits[2]) }
      }
      case 'MAP': {
        expect('(')
        const key = type()
        expect(',')
        const value = type()
        expect(')')
        return { kind: 'map', key, value }
      }
      case 'STRUCT': {
        const fields: { name: string; type: DuckDbType }[] = []
        expect('(')
        do fields.push({ name: fieldName(), type: type() })
        while (text[at] === ',' && at++ >= 0)
        expect(')')
        return { kind: 'struct', fields }
      }
      default:
        skipArguments()
        return { kind: 'other', name }
    }
  }
  function type(): DuckDbType {
    let parsed = base()
    for (;;) {
      const dimension = /^\[\d*\]/.exec(text.slice(at))
      if (!dimension) return parsed
      at += dimension[0].length
      parsed = { kind: 'list', element: parsed }
    }
  }

  const parsed = type()
  skipBlanks()
  return at === text.length ? parsed : fail()
}
