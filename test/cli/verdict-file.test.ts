import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { openPositionFile } from '../../src/cli/position-file.ts'
import { openVerdictFile } from '../../src/cli/verdict-file.ts'
import { SHADOW_BEGINNING } from '../../src/replay/shadow/mirror-queue.ts'
import { temporaryFolder } from '../support/quipu-process.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())

const line = (queryId: string) => ({ queryId, createdAt: '2026-01-01T00:00:00.000Z', verdict: 'SAME' }) as const

async function idsIn(path: string): Promise<readonly string[]> {
  const file = openVerdictFile(path)
  const ids: string[] = []
  for await (const { queryId } of file.before()) ids.push(queryId)
  file.close()
  return ids
}

describe('A verdict file', () => {
  it('loses a last line that was cut at any character, and continues after the line before', async () => {
    const path = join(folder.path, 'cut.jsonl')
    const [first, last] = [line('a'), line('b')].map((one) => JSON.stringify(one))
    for (let length = 1; length < last!.length; length++) {
      writeFileSync(path, `${first}\n${last!.slice(0, length)}`)
      expect(await idsIn(path), `${length} characters`).toEqual(['a'])
      expect(readFileSync(path, 'utf8')).toBe(`${first}\n`)
    }
  })

  it('reads a line with U+2028 or U+2029 in a text as one line', async () => {
    const path = join(folder.path, 'separators.jsonl')
    writeFileSync(path, `${JSON.stringify(line('a\u2028b'))}\n${JSON.stringify(line('c\u2029'))}\n`)
    expect(await idsIn(path)).toEqual(['a\u2028b', 'c\u2029'])
  })

  it('continues on a new line after a last line without its line break', async () => {
    const path = join(folder.path, 'unbroken.jsonl')
    writeFileSync(path, JSON.stringify(line('a')))
    expect(await idsIn(path)).toEqual(['a'])
    const file = openVerdictFile(path)
    file.write(line('b'))
    file.close()
    expect(await idsIn(path)).toEqual(['a', 'b'])
  })

  it('is refused with the number of a line that is none of a replay', async () => {
    const path = join(folder.path, 'other.jsonl')
    writeFileSync(path, `${JSON.stringify(line('a'))}\nname,value\n`)
    await expect(idsIn(path)).rejects.toThrow(`${path}:2 is not a line of a replay: name another file`)
  })
})

describe('A position file', () => {
  const servers = { from: 'http://a', to: 'http://b' }

  it('gives the beginning until a position is saved, then the last position', () => {
    const path = join(folder.path, 'kept.position')
    expect(openPositionFile(path, servers).read()).toEqual(SHADOW_BEGINNING)
    const position = { ...SHADOW_BEGINNING, after: '0-7', open: [{ queryId: 'q', elapsedMs: 1.5 }] }
    openPositionFile(path, servers).save({ ...position, after: '0-6' })
    openPositionFile(path, servers).save(position)
    expect(openPositionFile(path, servers).read()).toEqual(position)
    expect(() => openPositionFile(path, { ...servers, to: 'http://c' }).read()).toThrow('name another file')
  })

  it('is refused if it is another file', () => {
    const path = join(folder.path, 'notes.position')
    writeFileSync(path, 'dear diary')
    expect(() => openPositionFile(path, servers).read()).toThrow('is not the position of a shadow')
  })
})
