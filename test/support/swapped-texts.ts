/** Marks around a text, so that tests find it in any text made from it. */
const [OPEN, CLOSE] = ['Zq', 'qZ']

/** A text of letters with the same length in characters, also when both are quoted. */
export function plainLike(text: string): string {
  return [...text].map((character) => (character === "'" || character.length === 2 ? '𝐚' : 'p')).join('')
}

export function marked(text: string): string {
  return `${OPEN}${text}${CLOSE}`
}

/** The expected rendering of `text` at the position of `plain`. Both are marked. */
export function swapped(rendered: string, plain: string, text: string): string {
  return rendered.replaceAll(quoted(plain), () => quoted(text))
}

function quoted(text: string): string {
  return text.replaceAll("'", "''")
}

/** The parts outside strings and quoted names in DuckDB's SQL. @throws Error for an unclosed quote */
export function codeOutsideOfTexts(rendered: string): string {
  let code = ''
  let at = 0
  while (at < rendered.length) {
    const character = rendered[at]!
    if (character !== "'" && character !== '"') {
      code += character
      at++
      continue
    }
    let end = rendered.indexOf(character, at + 1)
    while (end >= 0 && rendered[end + 1] === character) end = rendered.indexOf(character, end + 2)
    if (end < 0) throw new Error(`Not closed: ${rendered.slice(at)}`)
    code += character + character
    at = end + 1
  }
  return code
}

/** Whether a part of a marked text became code. */
export function leaks(rendered: string): boolean {
  const code = codeOutsideOfTexts(rendered)
  return code.includes(OPEN) || code.includes(CLOSE) || /\$\$|--|\/\*|;|\$[A-Z0-9(]/.test(code.replaceAll(`""`, ''))
}
