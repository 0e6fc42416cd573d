import type { Readable } from 'node:stream'

/**
 * The lines of a text in UTF-8. Only a line feed ends a line: JSON may contain other line ends, such as U+2028, which
 * `node:readline` would take as the end of a line.
 */
export async function* linesIn(input: Readable): AsyncGenerator<string> {
  let begun: string[] = []
  for await (const chunk of input.setEncoding('utf8')) {
    const [rest = '', ...more] = (chunk as string).split('\n')
    begun.push(rest)
    for (const next of more) {
      yield begun.join('')
      begun = [next]
    }
  }
  const last = begun.join('')
  if (last !== '') yield last
}
