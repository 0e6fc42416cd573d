import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { connectorFactories } from '../src/processes/connector-factories.ts'
import { repository } from './support/repository.ts'

const docs = readdirSync(join(repository, 'docs')).filter((file) => file.endsWith('.md'))
const textOf = (file: string): string => readFileSync(join(repository, 'docs', file), 'utf8')

/** Tests may be named without what ends their names; a configuration is there where somebody made one. */
function isThere(path: string): boolean {
  const ends = path.startsWith('test/') ? ['', '.test.ts', '.int.test.ts', '.e2e.test.ts'] : ['']
  return path === 'etc/config.json' || ends.some((end) => existsSync(join(repository, path + end)))
}

/** Folders of `src` with files of their own, up to three deep: what a page about all of it names. */
function foldersBelow(folder: string, depth = 3): string[] {
  return readdirSync(join(repository, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => {
      const path = `${folder}/${name}`
      const hasFiles = readdirSync(join(repository, path)).some((file) => file.endsWith('.ts'))
      return [...(hasFiles ? [path] : []), ...(depth > 1 ? foldersBelow(path, depth - 1) : [])]
    })
}

describe('the pages for who works on it', () => {
  it.each(docs)('%s names files and folders that are there', (file) => {
    const named = [...textOf(file).matchAll(/`((?:src|test|dashboards|bench|etc|docs|migrations)\/[\w./-]*)`/g)].map(
      ([, path]) => path!,
    )
    expect(named.filter((path) => !isThere(path))).toEqual([])
  })

  it.each(docs)('%s links pages that are there', (file) => {
    const linked = [...textOf(file).matchAll(/\]\(([\w./-]+)(?:#[\w-]+)?\)/g)].map(([, path]) => path!)
    expect(linked.filter((path) => !existsSync(join(repository, 'docs', path)))).toEqual([])
  })

  it('tell of every folder of src', () => {
    const reported = textOf('where-is-what.md')
    const untold = foldersBelow('src').filter(
      (folder) => !reported.includes(`\`${folder}\``) && !INSIDE.some((room) => folder.startsWith(`${room}/`)),
    )
    expect(untold).toEqual([])
  })
})

/** Rooms whose folders go without saying. */
const INSIDE = ['src/sql/functions', 'src/readmodels', 'src/events']

it('every connector runs the contract', () => {
  const tests = readdirSync(join(repository, 'test/connectors'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => readFileSync(join(repository, 'test/connectors', file), 'utf8'))
    .filter((text) => text.includes('connectorContract('))
  const without = connectorFactories.filter(
    ({ connectorName: name }) => !tests.some((text) => text.includes(`${name}Connector`)),
  )
  expect(without.map(({ connectorName }) => connectorName)).toEqual([])
})
