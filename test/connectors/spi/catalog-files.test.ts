import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { connectorFactories, duckdbTypeOf } from '../../../src/processes/connector-factories.ts'
import { allowedDirectories, loadCatalogs } from '../../../src/connectors/spi/catalog-files.ts'
import { ExitError } from '../../../src/shared/engine-error.ts'

const root = mkdtempSync(join(tmpdir(), 'quipu-catalogs-'))
const folder = join(root, 'catalog')
const etc = new URL('../../../etc', import.meta.url).pathname
const load = () =>
  loadCatalogs(folder, connectorFactories, {
    dataDir: root,
    tablesDir: join(root, 'tables'),
    shippedDir: etc,
    inspect: () => Promise.resolve([]),
    duckdbType: duckdbTypeOf,
  })
const write = (file: string, text: string) => writeFileSync(join(folder, file), text)

describe('The catalog files', () => {
  beforeEach(() => {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder)
  })
  afterAll(() => rmSync(root, { recursive: true }))

  it('define one catalog each, with the name of the file', () => {
    mkdirSync(join(root, 'lake'), { recursive: true })
    write('tpch.json', '{"connector": "tpch"}')
    write('files.json', '{"connector": "lake", "location": "../lake"}')
    write('README.md', 'not a catalog')
    const catalogs = load()
    expect(catalogs.names()).toEqual(['files', 'tpch'])
    expect(catalogs.get('tpch')!.connectorName).toBe('tpch')
    expect(catalogs.get('nowhere')).toBeUndefined()
    expect(allowedDirectories(catalogs)).toEqual([`${join(root, 'lake')}/`, `${etc}/tpch/`])
  })

  it('define no catalog if their folder does not exist', () => {
    rmSync(folder, { recursive: true })
    expect(load().names()).toEqual([])
  })

  it.each([
    ['broken.json', '{', /broken\.json.*JSON/],
    ['list.json', '[]', /list\.json.*expected object/i],
    ['none.json', '{}', /none\.json.*connector/],
    [
      'odd.json',
      '{"connector": "oracle"}',
      /odd\.json.*the connector 'oracle' is unknown; known connectors are tpch, lake/,
    ],
    ['Upper.json', '{"connector": "tpch"}', /Upper\.json.*lower-case/],
    ['extra.json', '{"connector": "tpch", "scale": 1}', /extra\.json.*scale/],
    [
      'lost.json',
      '{"connector": "lake", "location": "/no/such/folder"}',
      /lost\.json.*\/no\/such\/folder.*not a folder/,
    ],
    ['bare.json', '{"connector": "lake"}', /bare\.json.*location/],
  ])('stop the start with a one-line error if %s is invalid', (file, text, line) => {
    write(file, text)
    let thrown: unknown
    try {
      load()
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBeInstanceOf(ExitError)
    expect((thrown as ExitError).exitCode).toBe(64)
    expect((thrown as ExitError).message).toMatch(line)
    expect((thrown as ExitError).message).not.toContain('\n')
  })
})
