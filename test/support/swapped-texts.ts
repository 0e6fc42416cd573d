/** Around a text, so that it is found in whatever is made of it. */
const [OPEN, CLOSE] = ['Zq', 'qZ']

/** A text of letters, as long as the other in characters and once it is quoted. */
export function plainLike(text: string): string {
  return [...text].map((character) => (character === "'" || character.length === 2 ? '𝐚' : 'p')).join('')
}

export function marked(text: string): string {
  return `${OPEN}${text}${CLOSE}`
}

/** What must stand where `plain` was rendered, had it been `text`; both marked. */
export function swapped(rendered: string, plain: string, text: string): string {
  return rendered.replaceAll(quoted(plain), () => quoted(text))
}

function quoted(text: string): string {
  return text.replaceAll("'", "''")
}

/** What stands outside of strings and quoted names in DuckDB's SQL; throws where one of them is not closed. */
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

/** Whether anything of a marked text is code. */
export function leaks(rendered: string): boolean {
  const code = codeOutsideOfTexts(rendered)
  return code.includes(OPEN) || code.includes(CLOSE) || /\$\$|--|\/\*|;|\$[A-Z0-9(]/.test(code.replaceAll(`""`, ''))
}
