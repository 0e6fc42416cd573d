import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { execFileSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { setImmediate as nextPass } from 'node:timers/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openRowReader } from '../../../src/execution/engine/row-reader.ts'
import { takeStaged } from '../../../src/execution/engine/staged-files.ts'

/** The user of the engine. */
const USER = 1_999_999_999
const HOLES = 2 ** 31
let home: string
let staged: string
let attempt: string

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'quipu-staged-'))
  staged = join(home, 'own', 'write-1')
  attempt = join(home, 'attempt')
  mkdirSync(staged, { recursive: true })
  mkdirSync(attempt)
  writeFileSync(join(home, 'secret'), 'the secret', { mode: 0o600 })
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

const file = (name: string) => ({ path: join('/anywhere', name), rows: 1, bytes: 9, columnBytes: { a: 3 } })
const take = (...names: string[]) => takeStaged(staged, attempt, USER, names.map(file), new AbortController().signal)

describe.runIf(process.getuid?.() === 0)('`takeStaged` for files that an engine of another user has written', () => {
  beforeEach(() => chownSync(staged, USER, USER))

  it('copies the files with this process as their owner, and removes them with their folder', async () => {
    for (const [name, text] of [
      ['a.parquet', 'some rows'],
      ['b.parquet', 'other rows'],
    ] as const) {
      writeFileSync(join(staged, name), text)
      chownSync(join(staged, name), USER, USER)
    }
    const taken = await take('a.parquet', 'b.parquet')
    expect(taken).toEqual([
      { path: join(attempt, 'a.parquet'), rows: 1, bytes: 9, columnBytes: { a: 3 } },
      { path: join(attempt, 'b.parquet'), rows: 1, bytes: 10, columnBytes: { a: 3 } },
    ])
    expect(readFileSync(join(attempt, 'b.parquet'), 'utf8')).toBe('other rows')
    expect(statSync(join(attempt, 'a.parquet')).uid).toBe(process.getuid!())
    expect(existsSync(staged)).toBe(false)
  })

  it('stops the copy of a huge sparse file when the signal aborts', async () => {
    writeFileSync(join(staged, 'a.parquet'), '')
    truncateSync(join(staged, 'a.parquet'), HOLES)
    chownSync(join(staged, 'a.parquet'), USER, USER)
    const stop = new AbortController()
    const taken = takeStaged(staged, attempt, USER, [file('a.parquet')], stop.signal)
    const target = join(attempt, 'a.parquet')
    while (!statSync(target, { throwIfNoEntry: false })?.size) await nextPass()
    stop.abort()
    // A file system that shares blocks copies nothing, and then the call may succeed.
    await taken.catch(() => undefined)
    expect(statSync(target).blocks * 512).toBeLessThan(HOLES / 2)
  })

  it.each<[string, (path: string) => void]>([
    ['a link to a file of its parent', (path) => symlinkSync(join(home, 'secret'), path)],
    ['a second name of a file of its parent', (path) => linkSync(join(home, 'secret'), path)],
    [
      'a file of its own with a second name',
      (path) => {
        writeFileSync(path, 'x')
        chownSync(path, USER, USER)
        linkSync(path, join(home, 'second'))
      },
    ],
    ['a folder', (path) => mkdirSync(path)],
    [
      'a FIFO, which would block its reader',
      (path) => {
        execFileSync('mkfifo', [path])
        chownSync(path, USER, USER)
      },
    ],
    ['a missing entry', () => {}],
  ])('refuses %s in place of a file', async (_what, lay) => {
    lay(join(staged, 'a.parquet'))
    await expect(take('a.parquet')).rejects.toThrow()
    expect(readdirSync(attempt)).toEqual([])
    expect(readFileSync(join(home, 'secret'), 'utf8')).toBe('the secret')
  })

  it('refuses a folder that is a link, and removes nothing from its target', async () => {
    const tables = join(home, 'tables')
    mkdirSync(tables)
    writeFileSync(join(tables, 'a.parquet'), 'of others')
    rmSync(staged, { recursive: true })
    symlinkSync(tables, staged)
    await expect(take('a.parquet')).rejects.toThrow()
    expect(readdirSync(attempt)).toEqual([])
    expect(readFileSync(join(tables, 'a.parquet'), 'utf8')).toBe('of others')
  })

  it.each(['..', '.', '../secret', '.hidden', 'a\0b', ''])(
    'refuses a file name that leads outside the folder: %j',
    async (name) => {
      const taken = takeStaged(staged, attempt, USER, [{ ...file(''), path: name }], new AbortController().signal)
      await expect(taken).rejects.toThrow()
      expect(readdirSync(attempt)).toEqual([])
    },
  )

  it('does not overwrite an existing file', async () => {
    writeFileSync(join(staged, 'a.parquet'), 'x')
    chownSync(join(staged, 'a.parquet'), USER, USER)
    writeFileSync(join(attempt, 'a.parquet'), 'there')
    await expect(take('a.parquet')).rejects.toThrow('EEXIST')
    expect(readFileSync(join(attempt, 'a.parquet'), 'utf8')).toBe('there')
  })
})

it('`openRowReader` refuses a link or a regular file in place of its FIFO', () => {
  chmodSync(home, 0o700)
  const path = join(home, 'fifo-0')
  const open = () =>
    openRowReader(
      path,
      () => {},
      () => {},
    )
  symlinkSync(join(home, 'secret'), path)
  expect(open).toThrow('ELOOP')
  rmSync(path)
  linkSync(join(home, 'secret'), path)
  expect(open).toThrow('no FIFO')
})
