import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { askThroughProxy, sessionHeaders, createGuard, type GuardedAnswer } from '../support/guard.ts'
import { rolesOf, startStandbyCluster, type StandbyCluster } from '../support/standby-cluster.ts'
import { type StatementJson } from '../support/statement-client.ts'
import { temporaryFolder, waitUntil } from '../support/quipu-process.ts'
import { FULL_TESTS, representatives } from '../support/full-tests.ts'

// Sends requests of many callers to every endpoint of the document, at both coordinators and the worker. Each status
// follows from the rights of the caller, and no answer reveals a query that the caller may not see.

const OWNER = 'alice-7f3a'
/** Marks that no other user may read anywhere. The engine makes rows and errors: their marks are in no text. */
const marks = {
  text: 'mark-of-a-text-91c2',
  row: 'mark-of-a-row-55d0',
  error: 'mark-of-an-error-c7e1',
  source: 'mark-of-a-source-02bb',
  owner: OWNER,
} as const
const backwards = (text: string): string => [...text].toReversed().join('')

const rules = {
  queries: [
    { user: 'viewer', allow: ['execute', 'view'] },
    { user: 'killer', allow: ['execute', 'kill'] },
    { user: 'auditor', allow: ['execute', 'view', 'kill'] },
    { user: 'friend', queryOwner: 'alice.*', allow: ['view'] },
    { user: 'nobody-much', allow: [] },
    { allow: ['execute'] },
  ],
  impersonation: [{ original_user: 'robot', new_user: 'alice.*' }],
  principals: [
    { principal: 'viewer', user: 'auditor', allow: false },
    { principal: '.*', user: '.*', allow: true },
  ],
  system_information: [{ user: 'nobody-much', allow: [] }, { user: 'keeper', allow: ['write'] }, { allow: ['read'] }],
}
const people = [OWNER, 'viewer', 'killer', 'auditor', 'friend', 'nobody-much', 'robot', 'eve', 'keeper'] as const

const guard = createGuard(people, rules)
const clusterFiles = temporaryFolder()
let cluster: StandbyCluster
let nodes: Record<Asked['by'], { readonly url: string }>

// ---- callers ---------------------------------------------------------------------------------------

interface Caller {
  readonly headers: () => Promise<Readonly<Record<string, string>>> | Readonly<Record<string, string>>
  /** `stranger`: a caller that the server does not know. `imposter`: a user that claims to be another user. */
  readonly is: 'stranger' | 'person' | 'imposter' | 'key' | 'figures'
  /** The user that the caller acts as. */
  readonly user?: string
  readonly view?: true
  readonly kill?: true
  readonly lists?: true
  /** The caller has no right to information about the server. */
  readonly outside?: true
}

const callers = {
  'no credential': { is: 'stranger', headers: () => ({}) },
  'a name alone': { is: 'stranger', headers: () => ({ 'x-trino-user': OWNER }) },
  'a wrong password': { is: 'stranger', headers: () => guard.credentials.password(OWNER, 'guess') },
  'an unknown user': { is: 'stranger', headers: () => guard.credentials.password('zoe') },
  'an expired token': { is: 'stranger', headers: () => guard.credentials.token(OWNER, -60) },
  'a forged token': { is: 'stranger', headers: () => guard.credentials.forgedToken(OWNER) },
  'a forged cookie': {
    is: 'stranger',
    headers: () => ({ cookie: '__Host-quipu-session=quipu~ob~zzzzzz~1~e30~AAAA', 'sec-fetch-site': 'same-origin' }),
  },
  'a forged relay': { is: 'stranger', headers: () => ({ 'x-quipu-relay': 'e30.AAAA' }) },
  'the metrics token': { is: 'figures', headers: () => guard.credentials.metrics },
  'the cluster key': { is: 'key', headers: () => guard.credentials.key },
  'the cluster key, as somebody': { is: 'key', headers: () => ({ ...guard.credentials.key, 'x-trino-user': OWNER }) },
  owner: { is: 'person', user: OWNER, view: true, kill: true, headers: () => guard.credentials.password(OWNER) },
  'owner by token': {
    is: 'person',
    user: OWNER,
    view: true,
    kill: true,
    headers: () => guard.credentials.token(OWNER),
  },
  viewer: { is: 'person', user: 'viewer', view: true, headers: () => guard.credentials.password('viewer') },
  killer: { is: 'person', user: 'killer', kill: true, headers: () => guard.credentials.password('killer') },
  auditor: { is: 'person', user: 'auditor', view: true, kill: true, headers: () => guard.credentials.token('auditor') },
  friend: { is: 'person', user: 'friend', view: true, headers: () => guard.credentials.token('friend') },
  'somebody else': { is: 'person', user: 'eve', headers: () => guard.credentials.password('eve') },
  'who may nothing': {
    is: 'person',
    user: 'nobody-much',
    outside: true,
    headers: () => guard.credentials.token('nobody-much'),
  },
  robot: { is: 'person', user: 'robot', headers: () => guard.credentials.token('robot') },
  'robot as owner': {
    is: 'person',
    user: OWNER,
    view: true,
    kill: true,
    headers: async () => ({ ...(await guard.credentials.token('robot')), 'x-trino-user': OWNER }),
  },
  'somebody else as owner': {
    is: 'imposter',
    headers: () => ({ ...guard.credentials.password('eve'), 'x-trino-user': OWNER }),
  },
  'somebody else with owner as the original': {
    is: 'imposter',
    headers: () => ({ ...guard.credentials.password('eve'), 'x-trino-user': 'eve', 'x-trino-original-user': OWNER }),
  },
} as const satisfies Readonly<Record<string, Caller>>
type CallerName = keyof typeof callers

// ---- rights and resources --------------------------------------------------------------------------

/**
 * `open` to all; `people`: any user; `execute`: a user that may run statements; `cluster`: processes of the cluster;
 * `coordinators`: only between coordinators; `figures`: monitoring; `system`: information about the server;
 * `administrators`; `acts`: administrators who log in; `view` or `kill`: a right to one query.
 */
type Right =
  | 'open'
  | 'people'
  | 'execute'
  | 'cluster'
  | 'coordinators'
  | 'figures'
  | 'system'
  | 'administrators'
  | 'acts'
  | 'view'
  | 'kill'

/** The right that each operation of the document needs. */
const rights: Readonly<Record<string, Right>> = {
  'POST /v1/statement': 'people',
  'GET /v1/statement/{queryId}/{token}': 'view',
  'DELETE /v1/statement/{queryId}/{token}': 'kill',
  'DELETE /v1/stage/{stageId}/{mac}': 'kill',
  'GET /v1/query': 'people',
  'GET /v1/query/totals': 'people',
  'GET /v1/query/{queryId}': 'view',
  'DELETE /v1/query/{queryId}': 'kill',
  'PUT /v1/query/{queryId}/killed': 'kill',
  'PUT /v1/query/{queryId}/preempted': 'kill',
  'POST /v1/query/{queryId}/forget': 'administrators',
  'POST /v1/erasure': 'administrators',
  'POST /v1/erasure/preview': 'administrators',
  'GET /v1/erasure/{erasureId}': 'administrators',
  'GET /v1/query/{queryId}/events': 'view',
  'GET /v1/query/{queryId}/digest': 'view',
  'GET /v1/query/{queryId}/trace': 'view',
  'GET /v1/events': 'people',
  'GET /v1/act': 'acts',
  'POST /v1/act': 'acts',
  'POST /v1/act/preview': 'acts',
  'GET /v1/act/{actId}': 'acts',
  'DELETE /v1/act/{actId}': 'acts',
  'POST /v1/replay': 'execute',
  'PUT /v1/replay/{replayId}': 'execute',
  'POST /v1/system/rebuilt': 'cluster',
  'POST /v1/system/verified': 'cluster',
  'GET /v1/audit': 'system',
  'POST /v1/system/sightings': 'coordinators',
  'POST /v1/system/anchor-key': 'coordinators',
  'GET /v1/resourceGroupState': 'system',
  'GET /v1/resourceGroupState/{group}': 'system',
  'GET /v1/cluster': 'system',
  'GET /v1/cluster/{name}': 'system',
  'GET /v1/cluster/{name}/events': 'system',
  'PUT /v1/cluster/{name}/state': 'administrators',
  'GET /v1/node': 'system',
  'GET /v1/node/failed': 'system',
  'PUT /v1/node/{nodeId}/state': 'administrators',
  'PUT /v1/announcement': 'cluster',
  'DELETE /v1/announcement/{nodeId}': 'cluster',
  'GET /v1/task': 'cluster',
  'DELETE /v1/task': 'cluster',
  'GET /v1/task/{taskId}': 'cluster',
  'POST /v1/task/{taskId}': 'cluster',
  'DELETE /v1/task/{taskId}': 'cluster',
  'GET /v1/task/{taskId}/results/{outputId}/{token}': 'cluster',
  'DELETE /v1/task/{taskId}/results/{outputId}': 'cluster',
  'GET /v1/info': 'open',
  'GET /v1/status': 'open',
  'GET /oauth2/token/initiate/{logIn}': 'open',
  'POST /oauth2/token/initiate/{logIn}': 'open',
  'GET /oauth2/callback': 'open',
  'GET /oauth2/token/{logIn}': 'open',
  'DELETE /oauth2/token/{logIn}': 'open',
  'POST /oauth2/revoke': 'open',
  'GET /metrics': 'figures',
  'GET /openapi.json': 'figures',
}
/** Pages of the web UI, which contain no data themselves. */
const pages = [
  'GET /ui',
  'GET /ui/groups',
  'GET /ui/nodes',
  'GET /ui/query/{queryId}',
  'GET /ui/app.js',
  'GET /ui/session',
  'POST /ui/log-out',
]
const described: string[] = []

interface Resource {
  readonly id: string
  readonly page: string
  readonly stage: string
  readonly state: 'open' | 'ended' | 'unknown'
}
const resources: Record<'open' | 'finished' | 'failed' | 'unknown', Resource> = {} as never

const OPEN_TEXT = `SELECT reverse('${backwards(marks.row)}') || l.comment, '${marks.text}' FROM lineitem l, nation n`

async function headersOf(name: CallerName): Promise<Record<string, string>> {
  return { ...(await callers[name].headers()) }
}

async function asOwner(sql: string): Promise<StatementJson> {
  const headers = { ...sessionHeaders, ...(await headersOf('owner')), 'x-trino-source': marks.source }
  const { status, text } = await askThroughProxy(nodes.writer.url, {
    method: 'POST',
    target: '/v1/statement',
    headers,
    body: sql,
  })
  expect(status, text).toBe(200)
  return JSON.parse(text) as StatementJson
}

/** Starts a query, and waits until it has stages and its owner has read a page. */
async function openQuery(): Promise<Resource> {
  const owner = await headersOf('owner')
  let answer = await asOwner(OPEN_TEXT)
  let stage: string | undefined
  let page = ''
  await waitUntil('the query gives rows', async () => {
    page = new URL(answer.nextUri!).pathname
    const { status, text } = await askThroughProxy(nodes.writer.url, { target: page, headers: owner })
    expect(status, text).toBe(200)
    answer = JSON.parse(text) as StatementJson
    stage = answer.partialCancelUri ?? stage
    return answer.data !== undefined && stage !== undefined
  })
  return { id: answer.id, page, stage: new URL(stage!).pathname, state: 'open' }
}

async function endedQuery(sql: string): Promise<Resource> {
  const owner = await headersOf('owner')
  let answer = await asOwner(sql)
  let page = ''
  while (answer.nextUri !== undefined) {
    page = new URL(answer.nextUri).pathname
    const { text } = await askThroughProxy(nodes.writer.url, { target: page, headers: owner })
    answer = JSON.parse(text) as StatementJson
  }
  return { id: answer.id, page, stage: resources.open.stage.replace(resources.open.id, answer.id), state: 'ended' }
}

beforeAll(async () => {
  mkdirSync(join(clusterFiles.path, 'clusters'), { mode: 0o755 })
  writeFileSync(join(clusterFiles.path, 'clusters', 'trino-a.json'), '{ "url": "http://127.0.0.1:9", "group": "big" }')
  cluster = await startStandbyCluster({ ...guard.env, QUIPU_CLUSTERS_DIR: join(clusterFiles.path, 'clusters') })
  const { writer, other } = await rolesOf(cluster)
  const known = await askThroughProxy(writer.url, { target: '/v1/node', headers: await headersOf('owner') })
  nodes = { writer, other, worker: { url: (JSON.parse(known.text) as { uri: string }[])[0]!.uri } }
  resources.open = await openQuery()
  resources.finished = await endedQuery(
    `SELECT reverse('${backwards(marks.row)}'), '${marks.text}' FROM nation LIMIT 2`,
  )
  resources.failed = await endedQuery(
    `SELECT cast(reverse('${backwards(marks.error)}') || comment AS bigint), '${marks.text}' FROM nation`,
  )
  const { id } = resources.finished
  const unknown = `${id.slice(0, -5)}zzzzz`
  resources.unknown = {
    ...resources.finished,
    id: unknown,
    page: resources.finished.page.replace(id, unknown),
    state: 'unknown',
  }
  const { text } = await askThroughProxy(nodes.writer.url, {
    target: '/openapi.json',
    headers: guard.credentials.metrics,
  })
  const { paths } = JSON.parse(text) as { paths: Record<string, Record<string, unknown>> }
  for (const [path, item] of Object.entries(paths))
    for (const method of Object.keys(item)) described.push(`${method.toUpperCase()} ${path}`)
}, 300_000)
afterAll(async () => {
  await cluster.stop()
  await guard.remove()
  await clusterFiles.remove()
})

// ---- expected answers ------------------------------------------------------------------------------

interface Asked {
  readonly operation: string
  readonly caller: CallerName
  readonly resource: keyof typeof resources
  readonly by: 'writer' | 'other' | 'worker'
}

/** Whether the caller may read data about the queries of the owner. */
function mayRead({ caller, operation }: Asked): boolean {
  const { view, is, outside }: Caller = callers[caller]
  if (is === 'person' && outside === undefined && rights[operation] === 'figures') return true
  // The metrics contain names of users and sources.
  if (is === 'key') return rights[operation] === 'cluster' || rights[operation] === 'administrators'
  return view === true || (is === 'figures' && rights[operation] === 'figures')
}

/** Whether the status is right for the request. */
function isRight({ operation, caller, resource, by }: Asked, status: number): boolean {
  const right = rights[operation] ?? 'open'
  const { is, view, kill, outside }: Caller = callers[caller]
  const mayNot = is === 'stranger' || is === 'figures' ? 401 : 403
  // The follower refuses a relayed request without checking it.
  if (caller === 'a forged relay' && by === 'other') return status === 503
  if (by === 'worker' && !ofWorkers.test(operation)) return status === 404
  switch (right) {
    case 'open':
      return status !== 500
    case 'figures':
      if (is === 'person' && by !== 'worker') return status === (outside ? 403 : 200)
      if (is === 'imposter' && by !== 'worker') return status === 403
      return status === (is === 'figures' ? 200 : 401)
    case 'system':
      return is === 'person' && !outside ? status < 400 : status === mayNot
    case 'administrators':
    case 'cluster':
      if (right === 'administrators' && (is === 'person' || is === 'imposter'))
        return status === (by === 'writer' || (by === 'other' && ofWriters.test(operation)) ? 403 : 404)
      // A follower has no such resources of its own.
      return is === 'key'
        ? ![401, 403, 500].includes(status)
        : [401, 404].includes(status) || isWorkers(operation, by, status)
    case 'acts':
      // The rules make nobody an administrator.
      return status === mayNot
    case 'coordinators':
      return [401, 404].includes(status)
    case 'execute':
      if (is !== 'person' || outside) return status === mayNot
      // The id is unknown.
      return operation.startsWith('PUT') ? status === 404 : status < 400
    case 'people':
      return is === 'person' ? status < 400 : status === mayNot
    case 'view':
    case 'kill': {
      if (mayNot === 401) return status === 401
      // Any known user may learn that a page or a query does not exist.
      if (resource === 'unknown' || isOver(operation, resource))
        return [404, 403, 410, ...(operation.startsWith('DELETE /v1/query') ? [204] : [])].includes(status)
      // A query that is open or failed has no digest.
      if (is === 'person' && view && operation.endsWith('/digest')) return [200, 404, 409].includes(status)
      if (is === 'person' && (right === 'view' ? view : kill)) return ![401, 403, 404, 500].includes(status)
      return status === 403
    }
  }
}

/** Operations for administrators that a follower passes on to the writer. */
const ofWriters = /^(PUT \/v1\/cluster\/|\w+ \/v1\/erasure)/

const ofWorkers = / \/(metrics$|v1\/task|v1\/info)/

/** Coordinators refuse the operations that only workers have. */
function isWorkers(operation: string, by: Asked['by'], status: number): boolean {
  return operation === 'DELETE /v1/task' && by !== 'worker' && status === 405
}

/** A query that has ended has no stage. */
function isOver(operation: string, resource: keyof typeof resources): boolean {
  return operation.includes('/v1/stage/') && resource !== 'open'
}

function targetOf({ operation, resource: name }: Asked, resource: Resource): string {
  const { id, page, stage } = resource
  const path = operation.slice(operation.indexOf(' ') + 1)
  if (path.startsWith('/v1/statement/')) return page
  if (path.startsWith('/v1/stage/')) return stage
  if (path === '/v1/query') return `/v1/query?q=${name === 'open' ? 'mark-of' : ''}&limit=1000`.replace('q=&', '')
  if (path.startsWith('/v1/resourceGroupState/')) return '/v1/resourceGroupState/global'
  if (path === '/v1/events')
    return name === 'unknown' ? `${path}?after=beginning` : `${path}?after=beginning&type=QueryCreated`
  return path
    .replace('{queryId}', id)
    .replace('{taskId}', `${id}.1.0`)
    .replace('{outputId}/{token}', '0/0')
    .replace('{outputId}', '0')
    .replace('{nodeId}', 'node-of-nobody')
    .replace('{name}', 'trino-a')
    .replace('{logIn}', 'AAAA')
    .replace('{replayId}', '0'.repeat(32))
}

/** A caller that may end queries gets a query of their own, so that the shared ones stay open. */
async function resourceOf({ operation, caller, resource }: Asked, method: string): Promise<Resource> {
  const { kill, is }: Caller = callers[caller]
  const changesOne = !['GET', 'HEAD', 'OPTIONS'].includes(method) && operation.includes('{')
  return resource === 'open' && changesOne && (kill === true || is === 'key') ? openQuery() : resources[resource]
}

const BODIES: Readonly<Record<string, string>> = {
  'POST /v1/statement': 'SELECT 1',
  'PUT /v1/announcement': '{}',
  'PUT /v1/cluster/{name}/state': '{"state":"DRAINING","by":"somebody"}',
  'PUT /v1/node/{nodeId}/state': '{"state":"SHUTTING_DOWN","by":"somebody"}',
  'POST /v1/system/rebuilt': '{}',
  'POST /v1/system/verified': '{}',
  'POST /v1/replay': JSON.stringify({
    mode: 'run',
    baseline: 'http://one',
    against: 'http://two',
    statements: 1,
    asRecorded: false,
    filter: {},
  }),
  'PUT /v1/replay/{replayId}': '{"verdicts":{"SAME":1}}',
  'PUT /v1/query/{queryId}/killed': 'enough',
  'PUT /v1/query/{queryId}/preempted': 'enough',
  'DELETE /v1/task': '{}',
}

async function ask(
  asked: Asked,
  more: {
    readonly method?: string
    readonly headers?: Record<string, string>
    readonly spell?: (path: string) => string
  } = {},
): Promise<GuardedAnswer> {
  const method = more.method ?? asked.operation.slice(0, asked.operation.indexOf(' '))
  const target = targetOf(asked, await resourceOf(asked, method))
  return askThroughProxy(nodes[asked.by].url, {
    method,
    target: more.spell?.(target) ?? target,
    headers: { ...(await headersOf(asked.caller)), ...more.headers },
    body: method === 'GET' ? undefined : (BODIES[asked.operation] ?? '{}'),
  })
}

/** Marks of the owner in an answer, except for the name that the caller wrote in the request. */
function leaksIn({ caller }: Asked, { headers, text }: GuardedAnswer): readonly string[] {
  const whole = `${JSON.stringify(headers)}\n${text}`
  const said = JSON.stringify(callersSay[caller] ?? '')
  return Object.values(marks).filter((mark) => whole.includes(mark) && !said.includes(mark))
}
const callersSay: Partial<Record<CallerName, string>> = {
  // The robot posts as the owner, and may read these queries.
  robot: OWNER,
  'a name alone': OWNER,
  'somebody else as owner': OWNER,
  'somebody else with owner as the original': OWNER,
}

const names = Object.keys(callers) as CallerName[]
const drawn = fc.record({
  caller: fc.constantFrom(...names),
  resource: fc.constantFrom('open', 'finished', 'failed', 'unknown'),
  by: fc.constantFrom('writer', 'other', 'writer', 'other', 'worker'),
})
/** The seed is fixed, so every run is the same; set these variables to try more requests. */
const seed = Number(process.env['QUIPU_RIGHTS_SEED'] ?? 17)
const numRuns = Number(process.env['QUIPU_RIGHTS_RUNS'] ?? (FULL_TESTS ? 200 : 100))

/** Runs a statement as a client does: returns its rows and its error. */
async function run(
  sql: string,
  caller: CallerName,
  by: 'writer' | 'other' = 'writer',
): Promise<{ readonly id: string; readonly rows: readonly unknown[]; readonly error: StatementJson['error'] }> {
  const known = await headersOf(caller)
  const headers = { ...sessionHeaders, ...known }
  const { url } = nodes[by]
  const rows: unknown[] = []
  let { status, text } = await askThroughProxy(url, { method: 'POST', target: '/v1/statement', headers, body: sql })
  for (;;) {
    expect(status, text).toBe(200)
    const answer = JSON.parse(text) as StatementJson
    rows.push(...(answer.data ?? []))
    if (answer.nextUri === undefined) return { id: answer.id, rows, error: answer.error }
    ;({ status, text } = await askThroughProxy(url, { target: new URL(answer.nextUri).pathname, headers: known }))
  }
}

async function denied(): Promise<readonly Record<string, unknown>[]> {
  const { text } = await askThroughProxy(nodes.other.url, {
    target: '/v1/events?after=beginning&type=AccessDenied',
    headers: await headersOf('auditor'),
  })
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice('data: '.length)) as { type: string; data: Record<string, unknown> })
    .map(({ type, data }) => ({ type, ...data }))
}

describe('A refusal', () => {
  it('is recorded in the log: a statement, an impersonation, a query to view or to kill', async () => {
    const refused = await run('SELECT 1', 'who may nothing')
    expect(refused.error).toMatchObject({
      errorName: 'PERMISSION_DENIED',
      message: 'Access Denied: Cannot execute query',
    })
    const become = await run('SET SESSION AUTHORIZATION carla', 'somebody else')
    expect(become.error).toMatchObject({ errorName: 'PERMISSION_DENIED' })
    const { id, page } = resources.open
    const eve = await headersOf('somebody else')
    const robot = { ...(await headersOf('robot')), 'x-trino-user': 'alice-2' }
    const statusOf = async (target: string, headers: Record<string, string>, method = 'GET'): Promise<number> =>
      (await askThroughProxy(nodes.writer.url, { method, target, headers })).status
    expect(await statusOf(`/v1/query/${id}`, { ...eve, 'x-trino-user': OWNER })).toBe(403)
    expect(await statusOf(`/v1/query/${id}`, eve)).toBe(403)
    expect(await statusOf(`/v1/query/${id}`, eve, 'DELETE')).toBe(403)
    expect(await statusOf(page, robot)).toBe(403)
    const wanted = [
      { user: 'nobody-much', action: 'execute', object: 'statement', queryId: refused.id },
      { user: 'eve', action: 'impersonate', object: 'user carla', queryId: become.id },
      { user: 'eve', action: 'impersonate', object: `user ${OWNER}` },
      { user: 'eve', action: 'view', object: `query of ${OWNER}`, queryId: id },
      { user: 'eve', action: 'kill', object: `query of ${OWNER}`, queryId: id },
      { user: 'alice-2', originalUser: 'robot', action: 'results', object: `query of ${OWNER}`, queryId: id },
    ]
    await waitUntil('all refusals are recorded', async () => (await denied()).length >= wanted.length)
    const reported = await denied()
    for (const one of wanted)
      expect(reported).toContainEqual({
        ...one,
        type: 'quipu.access.denied.v2',
        remoteAddress: expect.stringMatching(/^10\./),
        count: 1,
        minute: expect.any(String),
      })
  })

  it(
    'is not recorded for queries that lists and system tables leave out, and these show nothing of such queries',
    { timeout: 300_000 },
    async () => {
      const before = await denied()
      const tables = ['runtime.queries', 'runtime.tasks', 'history.queries', 'history.events']
      for (const by of ['writer', 'other'] as const)
        for (const [index, caller] of (['somebody else', 'killer', 'robot', 'viewer', 'friend'] as const).entries())
          for (const table of representatives(tables, 2, index + (by === 'writer' ? 0 : 1))) {
            const { rows, error } = await run(`SELECT * FROM system.${table}`, caller, by)
            expect(error).toBeUndefined()
            const seen = JSON.stringify(rows)
            const mayView = 'view' in callers[caller]
            for (const word of [...Object.values(marks), resources.open.id, resources.failed.id])
              if (!mayView) expect([caller, table, word, seen.includes(word)]).toEqual([caller, table, word, false])
            if (mayView && table.endsWith('.queries')) expect(seen).toContain(marks.text)
          }
      // The feed delivers recorded events within a moment.
      let after: typeof before = []
      await waitUntil('all refusals are recorded again', async () => (after = await denied()).length >= before.length)
      expect(after).toEqual(before)
    },
  )
})

describe('The rights of callers', () => {
  it('are listed in this test for every operation of the document', () => {
    expect(described.filter((operation) => rights[operation] === undefined)).toEqual([])
    expect(described.length).toBeGreaterThan(30)
  })

  it('decide the status at every endpoint of both coordinators and of a worker', { timeout: 600_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...described), drawn, async (operation, one) => {
        const asked: Asked = { operation, ...(one as Omit<Asked, 'operation'>) }
        const answer = await ask(asked)
        const reported = `${answer.status} ${answer.text.slice(0, 300)}`
        expect([isRight(asked, answer.status), reported]).toEqual([true, reported])
        if (!mayRead(asked)) expect(leaksIn(asked, answer)).toEqual([])
      }),
      { numRuns, seed },
    )
  })

  it('hold for other spellings of the path, other methods and forged headers', { timeout: 600_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...described, ...pages),
        drawn,
        fc.constantFrom(...spellings),
        fc.constantFrom(...methods),
        fc.constantFrom(...sayings),
        async (operation, one, spell, method, headers) => {
          const asked: Asked = { operation, ...(one as Omit<Asked, 'operation'>) }
          const answer = await ask(asked, { spell, headers, ...(method === undefined ? {} : { method }) })
          expect([answer.status < 500 || answer.status === 503 || answer.status === 501, answer.status]).toEqual([
            true,
            answer.status,
          ])
          const { is }: Caller = callers[asked.caller]
          if (!mayRead(asked)) expect(leaksIn(asked, answer)).toEqual([])
          // No spelling lets a caller in that has no right: open endpoints stay open, and pages lead to the log-in
          // page.
          if (is !== 'person' && is !== 'key' && rights[operation] !== undefined && rights[operation] !== 'open')
            if (is !== 'figures' || rights[operation] !== 'figures')
              expect([answer.status >= 300 || (method === 'OPTIONS' && answer.status === 204), answer.status]).toEqual([
                true,
                answer.status,
              ])
        },
      ),
      { numRuns, seed },
    )
  })

  it('let only a user with the right forget a query, and the event names this user', async () => {
    const { id } = await endedQuery('SELECT 1')
    const forget = async (headers: Record<string, string>): Promise<number> =>
      (await askThroughProxy(nodes.writer.url, { method: 'POST', target: `/v1/query/${id}/forget`, headers })).status
    expect(await forget(await headersOf('auditor'))).toBe(403)
    const keeper = guard.credentials.password('keeper')
    expect(await forget({ ...keeper, 'x-trino-user': OWNER })).toBe(403)
    expect(await forget({ ...keeper, 'x-forwarded-for': '10.9.8.7' })).toBe(200)
    const { text } = await askThroughProxy(nodes.writer.url, {
      target: '/v1/events?after=beginning&type=DataForgotten',
      headers: await headersOf('auditor'),
    })
    expect(text).toContain(`"stream":"${id}"`)
    expect(text).toContain('"by":"keeper","remoteAddress":"10.9.8.7"')
  })

  it('leave a query open that callers without the right tried to end', async () => {
    const { status, text } = await askThroughProxy(nodes.writer.url, {
      target: resources.open.page,
      headers: await headersOf('owner'),
    })
    expect([status, text.includes(marks.row)], text.slice(0, 300)).toEqual([200, true])
  })
})

/** Other spellings of a path; some of them mean another path. */
const spellings: readonly ((path: string) => string)[] = [
  (path) => path,
  (path) => path.replace(/(\?|$)/, '/$1'),
  (path) => `/${path}`,
  (path) => path.replaceAll('/', '//'),
  (path) => path.toUpperCase(),
  (path) =>
    path.replace('v1', 'V1').replace('query', 'Query').replace('metrics', 'Metrics').replace('openapi', 'OpenApi'),
  (path) => path.replace('e', '%65').replace('1', '%31'),
  (path) => path.replaceAll('/', '%2F').replace('%2F', '/'),
  (path) => `/v1/info/..${path}`,
  (path) => `/oauth2/..${path}`,
  (path) => `/ui/log-in/../..${path}`,
  (path) => `/ui/app.js/%2e%2e${path}`,
  (path) => `/oauth2/%2e%2e${path}`,
  (path) => `/.${path}`,
  (path) => path.replace(/(\?|$)/, ';x=1$1'),
  (path) => path.replace(/(\?|$)/, '%00$1'),
  (path) => path.replace(/(\?|$)/, '.json$1'),
  (path) => `http://127.0.0.1${path}`,
  (path) => `http://127.0.0.1/v1/info/..${path}`,
  (path) => `${path}${path.includes('?') ? '&' : '?'}asOf=1`,
  (path) => `${path}${path.includes('?') ? '&' : '?'}asOf=2099-01-01T00:00:00Z`,
]

const methods = [undefined, undefined, undefined, 'HEAD', 'OPTIONS', 'PUT', 'POST', 'PATCH', 'DELETE'] as const

/** Headers of proxies, frameworks and coordinators, sent by a caller that is none of these. */
const sayings: readonly Record<string, string>[] = [
  {},
  {},
  { accept: 'text/html' },
  { 'x-forwarded-prefix': '/v1/info' },
  { 'x-original-url': '/v1/info', 'x-rewrite-url': '/v1/info' },
  { 'x-http-method-override': 'GET', 'x-method-override': 'GET' },
  { 'x-forwarded-for': '127.0.0.1, 10.1.2.3' },
  { 'x-forwarded-user': OWNER, 'x-remote-user': OWNER, 'remote-user': OWNER, 'x-auth-request-user': OWNER },
  { 'x-quipu-principal': OWNER, 'x-quipu-relayed-by': 'x' },
  { 'x-engine-original-user': 'eve' },
  { connection: 'close, authorization' },
]
