import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const script = fileURLToPath(new URL('run-tests.mjs', import.meta.url))

/** A test that passes. */
const PASSES = `it('passes', () => expect(1).toBe(1))`
/** A file whose second test fails in the first attempt only. */
const FAILS_FIRST = `
  import { existsSync, writeFileSync } from 'node:fs'
  ${PASSES}
  it('fails first', () => {
    const seen = import.meta.filename + '.seen'
    if (existsSync(seen)) return
    writeFileSync(seen, '')
    throw new Error('not at the first attempt\\nsecond line')
  })`
const FAILS_ALWAYS = `it('fails', () => { throw new Error('never') })`
const CANNOT_BE_LOADED = `import './missing.mjs'`
/** The test passes, and a promise that no test awaits rejects. */
const UNHANDLED = `it('passes', async () => {
  void Promise.reject(new Error('nobody awaits this'))
  await new Promise((resolve) => setTimeout(resolve, 50))
})`

describe('The test run', () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'quipu-run-tests-'))
    await writeFile(
      join(folder, 'vitest.config.mjs'),
      'export default { test: { globals: true, maxWorkers: 1, isolate: false } }',
    )
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  /** Runs a project of these files and returns its exit code and its output, line by line. */
  async function runProject(
    files: Record<string, string>,
    { ci = 'true', args = [] as string[] } = {},
  ): Promise<{ code: number; lines: string[] }> {
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
    const environment = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !/^(VITEST|TEST$|GITHUB)/.test(name)),
    )
    return new Promise((resolve) => {
      const child = execFile(
        process.execPath,
        [script, '--root', folder, ...args],
        { env: { ...environment, CI: ci, NO_COLOR: '1' } },
        (_error, stdout) => resolve({ code: child.exitCode ?? -1, lines: stdout.trimEnd().split('\n') }),
      )
    })
  }
  const flakyLines = (lines: string[]): string[] => lines.filter((line) => line.startsWith('FLAKY'))

  it('passes without FLAKY lines when all files pass', async () => {
    const { code, lines } = await runProject({ 'a.test.mjs': PASSES, 'b.test.mjs': PASSES })
    expect(lines.at(-1)).toBe('2 passed, 0 failed')
    expect(lines.some((line) => /Test Files +2 passed \(2\)/.test(line))).toBe(true)
    expect(flakyLines(lines)).toEqual([])
    expect(code).toBe(0)
  })

  it('passes and names the flaky file when a file fails in the first attempt only', async () => {
    const { code, lines } = await runProject({ 'flaky.test.mjs': FAILS_FIRST, 'good.test.mjs': PASSES })
    expect(flakyLines(lines)).toEqual(['FLAKY flaky.test.mjs: not at the first attempt'])
    expect(lines.at(-1)).toBe('3 passed, 0 failed')
    expect(code).toBe(0)
  })

  it('fails when a file fails in both attempts', async () => {
    const { code, lines } = await runProject({
      'bad.test.mjs': FAILS_ALWAYS,
      'unloadable.test.mjs': CANNOT_BE_LOADED,
      'flaky.test.mjs': FAILS_FIRST,
      'good.test.mjs': PASSES,
    })
    expect(flakyLines(lines)).toEqual(['FLAKY flaky.test.mjs: not at the first attempt'])
    expect(lines.at(-1)).toBe('3 passed, 2 failed')
    expect(code).toBe(1)
  })

  it('fails when more than three files are flaky', async () => {
    const names = ['a', 'b', 'c', 'd'].map((name) => `${name}.test.mjs`)
    const { code, lines } = await runProject(Object.fromEntries(names.map((name) => [name, FAILS_FIRST])))
    expect(flakyLines(lines).toSorted()).toEqual(names.map((name) => `FLAKY ${name}: not at the first attempt`))
    expect(lines.at(-1)).toBe('4 passed, 4 failed')
    expect(code).toBe(1)
  })

  it('counts an error that no test awaits as a failure of its file', async () => {
    const { code, lines } = await runProject({ 'unhandled.test.mjs': UNHANDLED })
    expect(lines.at(-1)).toBe('1 passed, 1 failed')
    expect(code).toBe(1)
  })

  it('makes no second attempt outside of CI', async () => {
    const { code, lines } = await runProject({ 'flaky.test.mjs': FAILS_FIRST }, { ci: '' })
    expect(flakyLines(lines)).toEqual([])
    expect(lines.at(-1)).toBe('1 passed, 1 failed')
    expect(code).toBe(1)
  })

  it('fails when its arguments name no file', async () => {
    const { code, lines } = await runProject({ 'good.test.mjs': PASSES }, { args: ['nothing-like-this'] })
    expect(lines.at(-1)).toBe('0 passed, 1 failed')
    expect(code).toBe(1)
  })
})
