import { appendFile, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { lineFile } from '../../src/publishing/line-file.ts'
import { temporaryFolder } from '../support/quipu-process.ts'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let path: string
beforeEach(async () => {
  folder = await temporaryFolder()
  path = join(folder.path, 'lineage.jsonl')
})
afterEach(() => folder.remove())

const message = (text: string) => ({ key: 'k', text })

it('a line file appends lines to a file that only its owner can read', async () => {
  const file = lineFile({ path })
  expect(await file.deliver([message('{"a":1}'), message('{"a":2}')])).toEqual({ taken: 2, refused: [] })
  await lineFile({ path }).deliver([message('{"a":3}')])
  expect(await readFile(path, 'utf8')).toBe('{"a":1}\n{"a":2}\n{"a":3}\n')
  expect((await stat(path)).mode & 0o777).toBe(0o600)
})

it.each([10, 70_000, 200_000])('a line file cuts off an incomplete last line of %i characters', async (length) => {
  await writeFile(path, `{"a":1}\n${'x'.repeat(length)}`)
  await lineFile({ path }).deliver([message('{"a":2}')])
  expect(await readFile(path, 'utf8')).toBe('{"a":1}\n{"a":2}\n')
})

it('a line file starts from an empty file if it holds only an incomplete line', async () => {
  await appendFile(path, 'x'.repeat(100_000))
  await lineFile({ path }).deliver([message('{}')])
  expect(await readFile(path, 'utf8')).toBe('{}\n')
})

it('line files rotate when they are full, and the oldest is deleted', async () => {
  const file = lineFile({ path, mostBytes: 20, kept: 2 })
  for (let number = 0; number < 9; number++) await file.deliver([message(`{"number":${number}}`)])
  expect((await readdir(folder.path)).toSorted()).toEqual(['lineage.jsonl', 'lineage.jsonl.1', 'lineage.jsonl.2'])
  expect(await readFile(path, 'utf8')).toBe('{"number":8}\n')
  expect(await readFile(`${path}.1`, 'utf8')).toBe('{"number":7}\n')
})

it('a line file reports an error of the file system, and continues once the cause is gone', async () => {
  await mkdir(path)
  const file = lineFile({ path })
  expect(await file.deliver([message('{}')])).toMatchObject({
    taken: 0,
    refused: [],
    trouble: expect.stringContaining('EISDIR') as string,
  })
  await rm(path, { recursive: true })
  expect(await file.deliver([message('{}')])).toEqual({ taken: 1, refused: [] })
})
