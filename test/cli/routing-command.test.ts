import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { routingCommand } from '../../src/cli/routing-command.ts'
import { spawnQuipu, temporaryFolder } from '../support/quipu-process.ts'

const folder = temporaryFolder()
const file = join(folder.path, 'rules.json')
const broken = join(folder.path, 'broken.json')

beforeAll(() => {
  const rules = [
    { name: 'etl', match: { user: 'etl-.*' }, route: { group: 'etl' } },
    { name: 'large', match: { bytesOver: '10GB' }, route: { group: 'big' }, fallback: 'local' },
    { name: 'unknown SQL', match: { userGroup: 'platform' }, route: { cluster: 'one' }, unchecked: true },
    { name: 'no deletes', match: { queryType: ['DELETE'] }, route: { reject: 'Ask the platform team' } },
  ]
  writeFileSync(file, JSON.stringify({ rules }))
  writeFileSync(broken, '{ "rules": [\n{ "name": "a", "route": "elsewhere" }] }')
})
afterAll(() => folder.remove())

const check = (...more: string[]) => spawnQuipu(['routing', 'check', ...more]).exit
const catalogs = ['--local', 'lake,tpch', '--group', 'big=hive,lake', '--group', 'etl=hive', '--cluster', 'one=hive']

describe('quipu routing check', () => {
  it('says that a file is valid', async () => {
    expect(await check(file)).toEqual({ code: 0, stdout: '4 rules, valid\n', stderr: '' })
  })

  it('refuses an invalid file with the line of the error', async () => {
    const { code, stdout, stderr } = await check(broken)
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' })
    expect(stderr).toContain('broken.json: line 2: rules, 1, route: A route is "local", or')
  })

  it('shows which rule decides, and why the rules before it do not', async () => {
    const statement = ['--user', 'etl-7', '--catalog', 'lake', '--type', 'select', '--bytes', '20GB']
    expect(await check(file, ...statement, ...catalogs)).toEqual({
      code: 0,
      stderr: '',
      stdout: `rule        | outcome
------------+--------------------------------------------
etl         | is skipped: group etl has no catalog 'lake'
large       | decides
unknown SQL | is not reached
no deletes  | is not reached

Route: group big, else local (by rule 'large')
`,
    })
  })

  it('shows the route of a statement that no rule routes', async () => {
    const { code, stdout } = await check(file, '--user', 'ana', '--source', 'cli', '--catalog', 'lake', ...catalogs)
    expect(code).toBe(0)
    expect(stdout).toContain('etl         | does not fit: user: ana\n')
    expect(stdout).toContain('large       | does not fit: bytesOver: the size is not known\n')
    expect(stdout).toContain('no deletes  | does not fit: queryType: none\n')
    expect(stdout).toContain('\nRoute: local (no rule decides)\n')
  })

  it('gives every target all catalogs where no flag describes one', async () => {
    const { stdout } = await check(file, '--user-group', 'platform', '--catalog', 'x', '--unresolved')
    expect(stdout).toContain("\nRoute: cluster one, unchecked (by rule 'unknown SQL')\n")
  })

  it('shows the error of a statement without a route, with exit code 1', async () => {
    const { code, stdout } = await check(file, '--writes', 'hive', ...catalogs)
    expect(code).toBe(1)
    expect(stdout).toContain("\nNo route: AMBIGUOUS_NAME: The groups 'big', 'etl' have the catalog 'hive'.")
  })

  it.each([
    [[], /takes one file/],
    [['FILE', '--bytes', '20'], /--bytes: '20' is not a data size/],
    [['FILE', '--user', 'a', '--group', 'big'], /--group: 'big' is not of the form name=catalog,catalog/],
    [['FILE', '--users', 'a'], /--users.*see quipu routing --help/],
  ])('refuses wrong arguments: %j', (given, message) => {
    const argv = ['check', ...given.map((one) => (one === 'FILE' ? file : one))]
    expect(() => routingCommand(argv)).toThrow(
      expect.objectContaining({ exitCode: 64, message: expect.stringMatching(message) }),
    )
  })
})
