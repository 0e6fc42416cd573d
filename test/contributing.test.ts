import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { connectorFactories } from '../src/processes/connector-factories.ts'
import { repository } from './support/repository.ts'

const docs = readdirSync(join(repository, 'docs')).filter((file) => file.endsWith('.md'))
const textOf = (file: string): string => readFileSync(join(repository, 'docs', file), 'utf8')

/** Tests may be named without their suffix. The configuration file is optional. */
function isThere(path: string): boolean {
  const suffixes = path.startsWith('test/') ? ['', '.test.ts', '.int.test.ts', '.e2e.test.ts'] : ['']
  return path === 'etc/config.json' || suffixes.some((end) => existsSync(join(repository, path + end)))
}

/** The folders of `src` that contain files, up to three levels deep. */
function foldersBelow(folder: string, depth = 3): string[] {
  return readdirSync(join(repository, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => {
      const path = `${folder}/${name}`
      const hasFiles = readdirSync(join(repository, path)).some((file) => file.endsWith('.ts'))
      return [...(hasFiles ? [path] : []), ...(depth > 1 ? foldersBelow(path, depth - 1) : [])]
    })
}

describe('The pages in docs', () => {
  it.each(docs)('%s names existing files and folders', (file) => {
    const named = [...textOf(file).matchAll(/`((?:src|test|dashboards|bench|etc|docs|migrations)\/[\w./-]*)`/g)].map(
      ([, path]) => path!,
    )
    expect(named.filter((path) => !isThere(path))).toEqual([])
  })

  it.each(docs)('%s links existing pages', (file) => {
    const linked = [...textOf(file).matchAll(/\]\(([\w./-]+)(?:#[\w-]+)?\)/g)].map(([, path]) => path!)
    expect(linked.filter((path) => !existsSync(join(repository, 'docs', path)))).toEqual([])
  })

  it('name every folder of src in where-is-what.md', () => {
    const reported = textOf('where-is-what.md')
    const untold = foldersBelow('src').filter(
      (folder) => !reported.includes(`\`${folder}\``) && !INSIDE.some((room) => folder.startsWith(`${room}/`)),
    )
    expect(untold).toEqual([])
  })
})

/** Rooms whose folders need no description. */
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
