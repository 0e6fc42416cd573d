import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { clientApp, type ClientApp } from '../../src/readmodels/queries/client-app.ts'

interface Sent {
  readonly sql?: string
  readonly source?: string
  readonly clientInfo?: string
  readonly clientTags?: string[]
  readonly userAgent?: string
}

const found = ({ sql = 'SELECT 1', clientTags = [], ...session }: Sent): ClientApp | undefined =>
  clientApp(sql, { clientTags, ...session })

const dbt =
  '{"app": "dbt", "dbt_version": "1.9.1", "profile_name": "p", "target_name": "dev", "node_id": "model.shop.orders"}'
const airflow = '{"dag_id": "etl", "dag_owner": "data-team", "dag_run_id": "r", "task_id": "load", "try_number": "1"}'
const lightdash =
  '{"organization_uuid": "o", "project_uuid": "p", "user_uuid": "u1", "dashboard_uuid": "d1", "chart_uuid": "c1", "query_context": "dashboard"}'

describe('The program behind a statement', () => {
  it.each<[string, Sent, ClientApp | undefined]>([
    ['dbt', { sql: `/* ${dbt} */\nselect 1` }, { app: 'dbt', object: 'model.shop.orders' }],
    ['dbt with a comment behind', { sql: `select 1\n/* ${dbt} */;\n` }, { app: 'dbt', object: 'model.shop.orders' }],
    ['dbt without a model', { sql: 'SELECT 1', source: 'dbt-trino-1.9.0' }, { app: 'dbt' }],
    [
      'Metabase',
      { sql: '-- Metabase:: userID: 7 queryType: MBQL queryHash: a54de3 dashboardID: 5 cardID: 12\nSELECT 1' },
      { app: 'metabase', object: 'dashboard:5/card:12', user: '7' },
    ],
    [
      'Metabase without a card',
      { sql: '-- Metabase:: userID: 7 queryType: native queryHash: a54de3\nSELECT 1', source: 'Metabase v0.50 [x]' },
      { app: 'metabase', object: 'query:a54de3', user: '7' },
    ],
    ['Metabase by its source', { source: 'Metabase v1.50.2 [6b3f…]' }, { app: 'metabase' }],
    [
      'Lightdash',
      { sql: `SELECT 1\n-- ${lightdash}` },
      { app: 'lightdash', object: 'dashboard:d1/chart:c1', user: 'u1' },
    ],
    [
      'Redash',
      {
        sql: '/* Username: ana@example.com, query_id: 12, Queue: queries, Job ID: 3, Query Hash: 9f, Scheduled: False */ SELECT 1',
      },
      { app: 'redash', object: 'query:12', user: 'ana@example.com' },
    ],
    [
      'Redash by its client info',
      { clientInfo: 'Username: bo, query_id: adhoc, Query Hash: 9f' },
      { app: 'redash', object: 'query:adhoc', user: 'bo' },
    ],
    [
      'Airflow',
      { source: 'airflow', clientInfo: airflow },
      { app: 'airflow', object: 'dag:etl/task:load', user: 'data-team' },
    ],
    [
      'dbt inside Airflow',
      { sql: `/* ${dbt} */ select 1`, clientInfo: airflow },
      { app: 'dbt', object: 'model.shop.orders' },
    ],
    ['Superset', { source: 'Apache Superset' }, { app: 'superset' }],
    ['Grafana', { source: 'grafana' }, { app: 'grafana' }],
    ['a server of agents', { source: 'mcp-trino/1.2.3', clientInfo: 'ana' }, { app: 'mcp', user: 'ana' }],
    ['a server of agents by its tag', { source: 'ana', clientTags: ['mcp'] }, { app: 'mcp' }],
    [
      'DBeaver',
      { source: 'DBeaver 24.1.0 - SQLEditor <Script-1.sql>', userAgent: 'Trino JDBC Driver/476' },
      { app: 'dbeaver', object: 'SQLEditor <Script-1.sql>' },
    ],
    ['Tableau', { source: 'Tableau-2024.2' }, { app: 'tableau' }],
    ['Power BI', { source: 'Microsoft Power BI' }, { app: 'power-bi' }],
    ['SQLAlchemy', { source: 'trino-sqlalchemy' }, { app: 'sqlalchemy' }],
    ['the driver only', { source: 'trino-jdbc', userAgent: 'Trino JDBC Driver/476' }, { app: 'trino-jdbc' }],
    [
      'a comment of sqlcommenter',
      { sql: "SELECT 1 /*application='Shop%20Front',controller='orders',action='list'*/" },
      { app: 'shop front', object: 'controller:orders/action:list' },
    ],
    [
      'another program with a JSON comment',
      { sql: '/* {"app": "Hex", "user": "bo"} */ SELECT 1' },
      { app: 'hex', user: 'bo' },
    ],
    ['nothing', { source: 'nightly.sh', clientInfo: 'free text', clientTags: ['a'] }, undefined],
    ['a comment without facts', { sql: '-- monthly numbers\nSELECT 1 -- done' }, undefined],
    ['a text that looks like a comment', { sql: `SELECT '/* ${dbt} */'` }, undefined],
    ['a list in place of facts', { sql: '/* ["app"] */ SELECT 1', clientInfo: '{"app": {}}' }, undefined],
  ])('is found: %s', (_, sent, expected) => {
    expect(found(sent)).toEqual(expected && { object: undefined, user: undefined, ...expected })
  })

  it('has bounded texts, whatever a client sends', () => {
    const long = 'x'.repeat(900)
    const sent = found({ sql: `/* ${JSON.stringify({ app: long, node_id: long, user: long })} */ SELECT 1` })
    expect([sent?.app.length, sent?.object?.length, sent?.user?.length]).toEqual([100, 500, 200])
    const part = fc.constantFrom(
      '/*',
      '*/',
      '--',
      '\n',
      "'",
      '{"app":',
      dbt,
      'Metabase:: ',
      'Query Hash: ',
      ', ',
      'a=',
      ';',
    )
    fc.assert(
      fc.property(
        fc.array(fc.oneof(part, fc.string({ maxLength: 6 })), { maxLength: 30 }),
        fc.string(),
        (parts, info) => {
          const made = found({ sql: parts.join(''), source: info, clientInfo: parts.slice(3).join('') })
          expect((made?.app.length ?? 0) <= 100).toBe(true)
        },
      ),
    )
  })

  it('is found in linear time in a text of comments only', () => {
    expect(found({ sql: `${'-- a\n'.repeat(100_000)}SELECT 1` })).toBeUndefined()
    expect(found({ sql: `/* ${'Username: a, '.repeat(100_000)}` })).toBeUndefined()
    expect(found({ sql: `/* ${'x'.repeat(4000)} */ SELECT 1` })).toBeUndefined()
  })

  it('is found in linear time in a text with many blanks', () => {
    const sql = `SELECT${' '.repeat(4000)}1`
    // In quadratic time, this takes longer than a test may take.
    for (let i = 0; i < 60_000; i++) found({ sql })
    expect(found({ sql })).toBeUndefined()
  })
})
