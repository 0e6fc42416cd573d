import { describe, expect, it } from 'vitest'
import type { QuerySession } from '../../../src/coordinator/query/stream/events.ts'
import { sealedSubmission } from '../../../src/coordinator/query/secrets/query-secrets.ts'
import { fingerprintOf } from '../../../src/sql/fingerprint.ts'
import { StatementText } from '../../../src/sql/parsed-statement.ts'
import { event, sampleData } from '../../support/query-events.ts'

const MARK = 'hunter5marker'
const { session, headerFamily, baseUri, resourceGroup, sampled } = sampleData.QueryCreated
const rest = {
  headerFamily,
  baseUri,
  resourceGroup,
  sampled,
  traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
}

describe('A sealed submission', () => {
  const secret = `password=${MARK}`
  it.each<[string, Partial<QuerySession>]>([
    ['roles', { roles: { system: `ROLE{${secret}}` } }],
    ['a role with a secret name', { roles: { db_password: MARK } }],
    ['properties', { properties: { 'lake.password': MARK, other: secret } }],
    ['prepared statements', { preparedStatements: { p: `SELECT '${MARK}' AS password` } }],
    ['resource estimates', { resourceEstimates: { api_key: MARK, EXECUTION_TIME: secret } }],
    ['tags', { clientTags: [secret] }],
    ['capabilities', { capabilities: [secret] }],
    ['groups', { groups: [secret] }],
    ['source', { source: `https://bob:${MARK}@host` }],
    ['client info', { clientInfo: secret }],
    ['trace token', { traceToken: secret }],
    ['path', { path: secret }],
    ['user agent', { userAgent: secret }],
    ['language', { language: secret }],
  ])('contains no secret of the session: %s', (_name, sent) => {
    const { created } = sealedSubmission(
      new StatementText('SELECT 1', sent.preparedStatements),
      { ...session, ...sent },
      rest,
    )
    expect(JSON.stringify(created)).not.toContain(MARK)
  })

  it('contains no secret name in the fingerprint, and no hash of it', () => {
    const text = new StatementText(`SELECT 1 AS "https://bob:${MARK}@host"`)
    const fingerprint = fingerprintOf(text.parse(), {})!
    expect(fingerprint.query).toContain(MARK)
    const { secrets } = sealedSubmission(text, session, rest)
    const planned = event('QueryPlanned', 0, { fingerprint })
    const sealed = JSON.stringify(secrets.seal(planned))
    expect(sealed).toContain('"fingerprint"')
    expect([sealed.includes(MARK), sealed.includes(fingerprint.hash)]).toEqual([false, false])
  })

  it('contains no secret name in the lineage', () => {
    const name = `https://bob:${MARK}@host`
    const { secrets } = sealedSubmission(new StatementText(`SELECT n + 1 AS "${name}" FROM t`), session, rest)
    const source = { source: 'c.s.t.n', direct: 'TRANSFORMATION' as const, indirect: [] }
    const lineage = { columns: [{ position: 0, name, sources: [source] }], rows: [source] }
    const sealed = secrets.seal(event('QueryPlanned', 0, { lineage }))
    expect(sealed).toMatchObject({
      data: { lineage: { columns: [{ name: '***', sources: [source] }], rows: [source] } },
    })
  })

  it('drops a tracestate with a secret, and keeps any other', () => {
    const of = (tracestate: string) =>
      sealedSubmission(new StatementText('SELECT 1'), session, { ...rest, tracestate }).created.tracestate
    expect(of(secret)).toBeUndefined()
    expect(of('congo=t61rcWkgMzE')).toBe('congo=t61rcWkgMzE')
  })
})
