import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'

const top = new URL('../..', import.meta.url).pathname
const folder = mkdtempSync(join(tmpdir(), 'quipu-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('The programs that a process starts', () => {
  const sources = readdirSync(join(top, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => ({ file, text: readFileSync(join(top, 'src', file), 'utf8') }))

  it('are all in the bundle, whether their starter uses `programUrl` or a URL beside its own file', () => {
    const named = sources.flatMap(({ text }) => [...text.matchAll(/programUrl\('([^']+)'/g)].map((found) => found[1]!))
    const beside = sources.flatMap(({ file, text }) =>
      [...text.matchAll(/new URL\(\s*'\.\/([a-z-]+)\.js'/g)].map((found) => join(file, '..', found[1]!)),
    )
    const children = ['coordinator', 'worker'].map((name) => `processes/${name}/${name}-process`)
    const started = [...named, ...beside, ...children]
    const bundled = [...readFileSync(join(top, 'bundle.mjs'), 'utf8').matchAll(/^ {2}'([a-z]+\/[a-z/-]+)',$/gm)]
    expect(started.length).toBeGreaterThan(8)
    expect(bundled.map((found) => found[1]!).sort()).toEqual([...new Set(started)].sort())
  })

  it('find no file by a path that a bundle does not have', () => {
    const elsewhere = sources.flatMap(({ file, text }) =>
      [...text.matchAll(/new URL\(\s*['`](\.\.\/[^'`]+)/g)].map((found) => `${file}: ${found[1]!}`),
    )
    expect(elsewhere.sort()).toEqual([
      'shared/programs.ts: ../../',
      'shared/shipped-files.ts: ../../',
      'shared/version.ts: ../../',
    ])
  })
})

/** Makes a project with these files, and returns where its program is, as seen from `file`. */
async function programOf(name: string, files: Readonly<Record<string, string>>, file: string): Promise<string> {
  const project = join(folder, name)
  for (const path of ['dist/shared', 'dist/bundle']) mkdirSync(join(project, path), { recursive: true })
  writeFileSync(join(project, 'package.json'), '{ "type": "module" }')
  for (const [path, text] of Object.entries(files)) writeFileSync(join(project, path), text)
  const [program] = readFileSync(join(top, 'dist/shared/programs.js'), 'utf8').split('//# sourceMappingURL')
  writeFileSync(join(project, file), program!)
  const { programUrl } = (await import(
    pathToFileURL(join(project, file)).href
  )) as typeof import('../../src/shared/programs.ts')
  return programUrl('execution/engine/engine-process').href.slice(pathToFileURL(project).href.length)
}

describe('A bundle', () => {
  const record = '{"version":"of today"}'
  const madeOf = createHash('sha256').update(record).digest('hex')
  const plain = '/dist/execution/engine/engine-process.js'
  const bundled = '/dist/bundle/engine-process.js'

  it('is used if it was made from the last output of the compiler', async () => {
    const files = { 'dist/.tsbuildinfo': record, 'dist/bundle/made-of': madeOf }
    expect(await programOf('fresh', files, 'dist/shared/programs.js')).toBe(bundled)
  })

  it('is not used if it is out of date, incomplete or absent', async () => {
    const since = { 'dist/.tsbuildinfo': '{"version":"later"}', 'dist/bundle/made-of': madeOf }
    expect(await programOf('stale', since, 'dist/shared/programs.js')).toBe(plain)
    expect(await programOf('half', { 'dist/.tsbuildinfo': record }, 'dist/shared/programs.js')).toBe(plain)
    expect(await programOf('unbuilt', { 'dist/bundle/made-of': madeOf }, 'dist/shared/programs.js')).toBe(plain)
  })

  it('starts its own programs, even if the compiler has written since', async () => {
    const files = { 'dist/.tsbuildinfo': 'later', 'dist/bundle/made-of': madeOf }
    expect(await programOf('within', files, 'dist/bundle/chunk.js')).toBe(bundled)
  })
})
