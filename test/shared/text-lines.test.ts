import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { linesIn } from '../../src/shared/text-lines.ts'

async function linesOf(...chunks: readonly (string | Buffer)[]): Promise<readonly string[]> {
  const lines: string[] = []
  for await (const line of linesIn(Readable.from(chunks.map((chunk) => Buffer.from(chunk))))) lines.push(line)
  return lines
}

it.each<[string, string, readonly string[]]>([
  ['at line feeds only', 'a\u2028b\u2029c\r\u0085d\ve\ff\ng', ['a\u2028b\u2029c\r\u0085d\ve\ff', 'g']],
  ['at the first and the last character', '\na\n', ['', 'a']],
  ['between empty lines', 'a\n\n\nb', ['a', '', '', 'b']],
  ['of an empty text', '', []],
])('`linesIn` separates lines %s', async (_, text, lines) => {
  expect(await linesOf(text)).toEqual(lines)
  expect(await linesOf(...Array.from(Buffer.from(text), (byte) => Buffer.from([byte])))).toEqual(lines)
})

it('`linesIn` joins a character and a line that arrive in parts', async () => {
  const line = `é\u2028${'x'.repeat(10 << 20)}💧`
  const bytes = Buffer.from(`${line}\nlast`)
  expect(await linesOf(bytes.subarray(0, 1), bytes.subarray(1, 4), bytes.subarray(4, -6), bytes.subarray(-6))).toEqual([
    line,
    'last',
  ])
})
