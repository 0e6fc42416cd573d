import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'

const src = new URL('../src', import.meta.url).pathname

const files = readdirSync(src, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
  .map((entry) => join(entry.parentPath, entry.name))
  .map((path) => ({
    path: relative(src, path),
    text: readFileSync(path, 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|(?<![:'"`])\/\/[^\n]*/g, (comment) =>
      comment.replaceAll(/[^\n]/g, ' '),
    ),
  }))

/** The files that read the fields of errors of a library, one file for each library. */
const ADAPTERS: Readonly<Record<string, string>> = {
  'shared/node-error.ts': 'Node, whose errors have codes',
  'events/postgres/database-error.ts': 'pg, whose errors have SQLSTATE',
  'events/kafka/kafka-error.ts': 'kafkajs, whose errors have types, and whose classes are slow to load',
}

/** Other files that may read such fields, with their reasons. */
const ALLOWED: Readonly<Record<string, string>> = {
  'telemetry/reported-error.ts': 'an error as the log has it: nothing is decided by it',
}

/** Files that may list names of errors, with their reasons. */
const LISTS: Readonly<Record<string, string>> = {
  'coordinator/scheduler/worker-answers.ts': 'workers of the version before say by it what may be tried again',
  'coordinator/query/secrets/query-secrets.ts': 'whether a message is about names or about values',
}

const classes = files.flatMap(({ path, text }) =>
  [...text.matchAll(/class (\w+)(?:<[^>]*>)? extends (\w+)/g)].map((match) => ({
    path,
    name: match[1]!,
    base: match[2]!,
  })),
)

function descendsFrom(name: string, ancestor: string): boolean {
  if (name === ancestor) return true
  const found = classes.find((one) => one.name === name)
  return found !== undefined && descendsFrom(found.base, ancestor)
}

const errors = classes.filter(({ name }) => descendsFrom(name, 'Error'))

/** Every match in the sources outside the excepted files, as `path: text`. */
function found(pattern: RegExp, except: Readonly<Record<string, string>> = { ...ADAPTERS, ...ALLOWED }): string[] {
  return files
    .filter(({ path }) => !Object.hasOwn(except, path))
    .flatMap(({ path, text }) => [...text.matchAll(pattern)].map((match) => `${path}: ${match[0].trim()}`))
}

const INSPECTED = 'includes|startsWith|endsWith|match|matchAll|search|indexOf|lastIndexOf'

describe('Errors', () => {
  it('extend QuipuError', () => {
    expect(errors.length).toBeGreaterThan(25)
    expect(errors.filter(({ base }) => base === 'Error').map(({ name }) => name)).toEqual(['QuipuError'])
  })

  it('have unique class names', () => {
    const names = errors.map(({ name }) => name)
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
    expect(found(/\bthis\.name = |override readonly name\b/g, {})).toEqual([])
  })

  it('are distinguished by class or fields, never by name', () => {
    const names = [...errors.map(({ name }) => name), 'Error', '\\w+Error'].join('|')
    expect(found(new RegExp(`\\.name\\)?\\s*(?:===?|!==?)\\s*['"\`](?:${names})['"\`]`, 'g'))).toEqual([])
    expect(found(/\bconstructor\.name\b/g, { ...ALLOWED, 'shared/quipu-error.ts': 'there names come from' })).toEqual(
      [],
    )
    expect(found(new RegExp(`case ['"](?:${names})['"]:`, 'g'))).toEqual([])
    expect(
      found(
        new RegExp(`\\b(?:error|err|cause|reason|thrown)\\b[^\\n=]*\\.name\\b[^\\n]*\\.(?:${INSPECTED}|test)\\(`, 'g'),
      ),
    ).toEqual([])
  })

  it('are never distinguished by message', () => {
    expect(found(new RegExp(`\\.message\\)*[?!]?\\.(?:${INSPECTED})\\(`, 'g'))).toEqual([])
    expect(found(/\.(?:test|exec)\([^()\n]*\.message\b[^\n]*/g)).toEqual([])
    expect(found(/\.message\s*(?:===?|!==?)\s*['"`]/g)).toEqual([])
  })

  it('are never matched against a list of error names of queries', () => {
    expect(found(/\.(?:has|includes|test)\([^()\n]*\.errorName\b[^\n]*/g, { ...ADAPTERS, ...LISTS })).toEqual([])
  })

  it('are read in one file for each library that throws them', () => {
    expect(
      found(
        /\bas NodeJS\.ErrnoException|\bas \{ (?:readonly )?code\?|'code' in \w+|\.code [!=]== '(?:E[A-Z]{3,}|[0-9A-Z]{5})'/g,
        { ...ADAPTERS, ...SUPERVISOR },
      ),
    ).toEqual([])
    expect(found(/\b(?:KafkaJS\w*Error|DatabaseError)\b/g)).toEqual([])
    expect(Object.keys(ADAPTERS).filter((path) => !files.some((file) => file.path === path))).toEqual([])
  })
})

/** The supervisor imports nothing, not even `shared`. */
const SUPERVISOR = Object.fromEntries(
  files.filter(({ path }) => path.startsWith('supervisor/')).map(({ path }) => [path, 'imports nothing']),
)
