import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'

const top = new URL('..', import.meta.url).pathname
const tracked = execFileSync('git', ['ls-files', '-z'], { cwd: top, encoding: 'utf8' })
  .split('\0')
  // The target of a symbolic link is tracked separately.
  .filter((file) => file !== '' && existsSync(join(top, file)) && lstatSync(join(top, file)).isFile())

function linesOf(files: readonly string[], pattern: RegExp): string[] {
  return files.flatMap((file) =>
    readFileSync(join(top, file), 'utf8')
      .split('\n')
      .flatMap((line, index) => (pattern.test(line) ? [`${file}:${index + 1}: ${line.slice(0, 120)}`] : [])),
  )
}

const texts = tracked.filter((file) => /\.(ts|mts|mjs|json|jsonl|md|sql|sh|ya?ml|svg|tsv)$|^[^.]+$|^\.ci\//.test(file))

/** The commit after which subjects are checked. A clone without its history is not checked. */
const CHECKED_SINCE = '9cfe95a873c26dbcaba0d590e2701881497cc8c6'

function subjectsSince(commit: string): readonly string[] {
  const git = (...command: string[]): string =>
    execFileSync('git', command, { cwd: top, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  try {
    git('merge-base', '--is-ancestor', commit, 'HEAD')
    return git('log', '--no-merges', '--format=%s', `${commit}..HEAD`).split('\n').filter(Boolean)
  } catch {
    return []
  }
}

it('subjects of commits begin with the area, and have at most 72 characters', () => {
  const isReadable = (subject: string): boolean =>
    subject.length <= 72 && /^(?:[a-z][\w ,./-]*: \S|Revert ")/.test(subject)
  expect(subjectsSince(CHECKED_SINCE).filter((subject) => !isReadable(subject))).toEqual([])
})

describe('Tracked files', () => {
  it('name no folder of a particular machine', () => {
    const folders = ['work', 'root', 'Users', 'farm'].join('|')
    expect(linesOf(texts, new RegExp(`(^|[^A-Za-z0-9_.])/(${folders})/`))).toEqual([])
  })

  it('lock packages by version and hash, not by address', () => {
    expect(linesOf(['package-lock.json'], /"resolved": *"https?:/)).toEqual([])
  })

  it('contain no TODO, no skipped or focused test, and no suppressed type check', () => {
    const code = tracked.filter(
      (file) => /^(src|test|bench|dashboards)\/.*\.m?ts$/.test(file) && file !== 'test/repository.test.ts',
    )
    expect(
      linesOf(code, /\b(TODO|FIXME|HACK)\b|\b(it|test|describe)\.(skip|only|todo)\(|@ts-(ignore|nocheck)/),
    ).toEqual([])
  })

  it('have migrations with a number each', () => {
    const numbers = tracked.flatMap((file) => /^migrations\/(\d+)_/.exec(file)?.[1] ?? [])
    expect(numbers.filter((number, index) => numbers.indexOf(number) !== index)).toEqual([])
  })

  it('link to existing files', () => {
    const pages = tracked.filter((file) => /^(README|docs\/[^/]+)\.md$/.test(file))
    const dead = pages.flatMap((page) =>
      [...readFileSync(join(top, page), 'utf8').matchAll(/\]\(([^)#:\s]+)(?:#[^)]*)?\)/g)]
        .map((match) => match[1]!)
        .filter((link) => !existsSync(join(top, dirname(page), link)))
        .map((link) => `${page}: ${link}`),
    )
    expect(pages.length).toBeGreaterThan(5)
    expect(dead).toEqual([])
  })
})
