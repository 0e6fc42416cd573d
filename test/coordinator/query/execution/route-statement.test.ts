import { describe, expect, it } from 'vitest'
import type { ConnectorColumn } from '../../../../src/connectors/spi/connector.ts'
import { createTrinoConnector } from '../../../../src/connectors/trino/trino-connector.ts'
import type { ClusterDirectory, ClusterView } from '../../../../src/coordinator/clusters/cluster.ts'
import { createClusterCatalogs } from '../../../../src/coordinator/clusters/metadata/cluster-catalogs.ts'
import { readRoutingRules } from '../../../../src/coordinator/clusters/routing/routing-rules.ts'
import { surveyOf } from '../../../../src/coordinator/front-end-threads/survey-of.ts'
import type { Delegation } from '../../../../src/coordinator/query/execution/delegation.ts'
import { routeStatement, type RoutedQuery } from '../../../../src/coordinator/query/execution/route-statement.ts'
import type { Identity } from '../../../../src/security/authorization.ts'
import { parseRulesFile } from '../../../../src/security/rules/rules-file.ts'
import { EngineError } from '../../../../src/shared/engine-error.ts'
import type { ClusterName } from '../../../../src/shared/ids.ts'
import { StatementText } from '../../../../src/sql/parsed-statement.ts'

const trinoA: Partial<ClusterView> = {
  name: 'trino-a' as ClusterName,
  group: 'big',
  catalogs: new Set(['far']),
  mirrors: new Set(['lake']),
  runAs: 'caller',
  enforcesAccess: false,
  state: 'ACTIVE',
  health: 'HEALTHY',
}

interface Given {
  readonly rules?: readonly object[]
  /** Access rules for tables; absent: no rules restrict users. */
  readonly tables?: readonly object[]
  readonly cluster?: Partial<ClusterView>
  /** The cluster once the rules were read. */
  readonly later?: Partial<ClusterView>
  /** The columns of each table of the cluster. */
  readonly there?: readonly (readonly [name: string, type: string])[]
}

/** Routes a statement where this server has `lake`, whose tables have the columns `a` and `secret`. */
function routeOf(sql: string, { rules = [], tables, cluster, later, there = HERE }: Given = {}) {
  const [before, after] = [cluster, later ?? cluster].map((changes) => ({ ...trinoA, ...changes }) as ClusterView)
  let now = before!
  const clusters: Pick<ClusterDirectory, 'list'> = { list: () => [now] }
  const { rules: routing } = readRoutingRules(JSON.stringify({ rules }))
  const access = tables && parseRulesFile(JSON.stringify({ tables }))
  const catalogs = createClusterCatalogs({
    clusters: { list: () => [before!] },
    local: { names: () => ['lake', 'system'], get: () => undefined },
    connect: createTrinoConnector,
    withinMs: () => 600_000,
    runOnCluster: async (_cluster, statement) =>
      ['ok', 'hidden', 't'].flatMap((table) =>
        statement.includes('.columns ') ? there.map(([name, type]) => [table, name, type, 'YES', null, null]) : [],
      ),
    now: () => performance.now(),
  })
  const delegation: Partial<Delegation> = {
    clusters: clusters as ClusterDirectory,
    rules() {
      now = after!
      return routing
    },
    catalogs,
  }
  const session = { source: 'cli', clientTags: [], properties: {}, preparedStatements: {} }
  return routeStatement(delegation as Delegation, {
    submission: { text: new StatementText(sql), session } as unknown as RoutedQuery['submission'],
    survey: surveyOf(new StatementText(sql), {}),
    identity: { user: 'bob', groups: [] } as Partial<Identity> as Identity,
    resourceGroup: 'all',
    rightsOf: access && ((user) => access.objects({ user, groups: [] })),
    tableHere: async (_catalog, schema, table) => ({
      schema,
      table,
      kind: 'TABLE',
      handle: {},
      columns: HERE.map(([name, type]): ConnectorColumn => ({ name, type, nullable: true })),
    }),
    bytesHere: async () => 5,
    signal: new AbortController().signal,
    analysis: { analyzeElsewhere: () => Promise.reject(new EngineError('TYPE_NOT_FOUND', 'not analysed')) },
  }).then(({ routed }) => routed)
}

const HERE = [
  ['a', 'bigint'],
  ['secret', 'decimal(10, 2)'],
] as const
const SELECT = ['SELECT']
const toBig = { name: 'big', route: { group: 'big' } }

describe('A statement over a mirrored table that its user may not read', () => {
  const all = { privileges: ['SELECT', 'DELETE'] }
  const hidden = [{ table: 'hidden', privileges: [] }, all]
  const there = [['a', 'bigint']] as const
  const MIXED = 'SELECT 1 FROM lake.s.hidden, far.tiny.nation'

  it.each([
    ['the table is hidden', hidden, {}],
    ['a column is hidden', [{ ...all, table: 'hidden', columns: [{ name: 'secret', allow: false }] }, all], {}],
    ['the cluster checks rights itself', hidden, { enforcesAccess: true }],
  ])('is refused without naming a column if it also needs the cluster: %s', async (_when, tables, cluster) => {
    for (const rules of [[], [toBig]]) {
      const error = await routeOf(MIXED, { tables, cluster, there, rules }).catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ errorName: 'PERMISSION_DENIED' })
      expect(String(error)).not.toMatch(/secret|decimal/)
    }
  })

  it.each([{}, { enforcesAccess: true }])('stays here, and the decision names no column: %j', async (cluster) => {
    const routed = await routeOf('SELECT 1 FROM lake.s.hidden', { tables: hidden, cluster, there, rules: [toBig] })
    expect(routed).toMatchObject({
      to: 'local',
      skipped: [{ rule: 'big', why: expect.stringMatching(/^Access Denied/) }],
    })
    expect(JSON.stringify(routed)).not.toMatch(/secret|decimal/)
  })

  it('is compared with the cluster where the user may read it', async () => {
    await expect(routeOf('SELECT 1 FROM lake.s.ok, far.tiny.nation', { tables: hidden, there })).rejects.toThrow(
      "table lake.s.ok differs: group big has no column 'secret'",
    )
    expect(await routeOf('SELECT 1 FROM lake.s.ok, far.tiny.nation', { tables: hidden })).toMatchObject({ to: 'group' })
  })
})

describe('An unresolved statement with an unchecked rule', () => {
  const rules = [{ ...toBig, unchecked: true }]
  const FUNCTION = 'TABLE(far.s.f(1))'
  const READ = `SELECT (SELECT count(*) FROM far.tiny.orders), (SELECT count(*) FROM ${FUNCTION})`
  const select = { privileges: SELECT }
  const orders = (more: object) => [{ table: 'orders', ...select, ...more }, select]

  it.each([
    ['a row filter', READ, orders({ filter: 'a = 1' }), 'NOT_SUPPORTED'],
    ['a mask', READ, orders({ columns: [{ name: 'a', mask: '1' }] }), 'NOT_SUPPORTED'],
    ['a hidden column', READ, orders({ columns: [{ name: 'a', allow: false }] }), 'PERMISSION_DENIED'],
    ['no privilege', READ, orders({ privileges: [] }), 'PERMISSION_DENIED'],
    ['no right to insert', `INSERT INTO far.s.t SELECT * FROM ${FUNCTION}`, [select], 'PERMISSION_DENIED'],
    ['no right to create', `CREATE TABLE far.s.t AS SELECT * FROM ${FUNCTION}`, [select], 'PERMISSION_DENIED'],
    ['no ownership', 'ALTER TABLE far.s.t EXECUTE optimize', [select], 'PERMISSION_DENIED'],
  ])('is refused for a table that it names: %s', async (_what, sql, tables, errorName) => {
    await expect(routeOf(sql, { rules, tables })).rejects.toMatchObject({ errorName })
  })

  it.each([
    [READ, [select]],
    ['CALL far.system.f()', [select]],
    ['ALTER TABLE far.s.t EXECUTE optimize', [{ privileges: ['OWNERSHIP'] }]],
    [READ, undefined],
  ])('is sent where its user has the rights: %s', async (sql, tables) => {
    const given = { rules, ...(tables && { tables }) }
    expect(await routeOf(sql, given)).toMatchObject({ to: 'group', name: 'big', grade: 'unchecked' })
  })
})

describe('A statement that names a catalog which only this server answers', () => {
  const noDeletes = { name: 'no', match: { queryType: ['DELETE'] }, route: { reject: 'Ask' } }
  const DELETE = 'DELETE FROM lake.s.ok WHERE a = 5 AND EXISTS (SELECT 1 FROM system.metadata.catalogs)'

  it('is rejected by a rule', async () => {
    expect(await routeOf(DELETE, { rules: [noDeletes] })).toMatchObject({ to: 'reject', rule: 'no' })
    const named = { name: 'no', match: { catalogs: ['system'] }, route: { reject: 'Ask' } }
    expect(await routeOf('SELECT 1 FROM system.jdbc.tables', { rules: [named] })).toMatchObject({ to: 'reject' })
    expect(await routeOf('SHOW TABLES FROM system.jdbc', { rules: [named] })).toMatchObject({ to: 'reject' })
  })

  it.each([
    'SELECT 1 FROM system.metadata.catalogs',
    'SELECT 1 FROM system.metadata.catalogs, lake.s.ok',
    'SELECT 1 FROM jmx.current.x, far.tiny.nation',
    `CALL system.runtime.kill_query('x')`,
    DELETE,
  ])('runs here otherwise: %s', async (sql) => {
    expect(await routeOf(sql)).toEqual({ to: 'local', skipped: [] })
    expect(await routeOf(sql, { tables: [{ privileges: SELECT }] })).toEqual({ to: 'local', skipped: [] })
    const routed = await routeOf(sql, { rules: [{ ...toBig, unchecked: true }] })
    expect(routed).toMatchObject({ to: 'local', skipped: [{ rule: 'big' }] })
  })
})

describe('The fallback of a rule', () => {
  const rules = [{ ...toBig, fallback: 'local' }]
  const there = [['a', 'integer']] as const

  it('is taken as decided, although a cluster opens meanwhile, because the tables were not compared', async () => {
    const given = { rules, there, cluster: { health: 'PENDING' }, later: {} } as const
    expect(await routeOf('SELECT 1 FROM lake.s.ok', given)).toMatchObject({ to: 'local', rule: 'big', fallback: true })
  })
})
