import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { askThroughProxy, sessionHeaders, createGuard, type GuardedAnswer } from '../support/guard.ts'
import { rolesOf, startStandbyCluster, type StandbyCluster } from '../support/standby-cluster.ts'
import { type StatementJson } from '../support/statement-client.ts'
import { waitUntil } from '../support/quipu-process.ts'

// Who may do what, over every endpoint that the document names, by both coordinators: statuses as the rights have them,
// and of a query that somebody may not see not a word.

const OWNER = 'alice-7f3a'
/** What nobody else may read anywhere. Rows and errors are made by the engine: their marks are in no text. */
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
let cluster: StandbyCluster
let nodes: Record<Asked['by'], { readonly url: string }>

// ---- who asks --------------------------------------------------------------------------------------

interface Caller {
  readonly headers: () => Promise<Readonly<Record<string, string>>> | Readonly<Record<string, string>>
  /** `stranger`: nobody whom this server knows. `imposter`: a user who says that he is another. */
  readonly is: 'stranger' | 'person' | 'imposter' | 'key' | 'figures'
  /** As whom he acts. */
  readonly user?: string
  readonly view?: true
  readonly kill?: true
  readonly lists?: true
  /** What the server tells of itself is not for him. */
  readonly outside?: true
}

const callers = {
  nobody: { is: 'stranger', headers: () => ({}) },
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

// ---- what is asked for -----------------------------------------------------------------------------

/** `open` to all; of a user; of one who may run something; of the cluster's processes; of coordinators among themselves; of who watches; of the server itself; about a query, to view it or to end it. */
type Right =
  'open' | 'people' | 'execute' | 'cluster' | 'coordinators' | 'figures' | 'system' | 'administrators' | 'view' | 'kill'

/** Of every operation in the document. */
const rights: Readonly<Record<string, Right>> = {
  'POST /v1/statement': 'people',
  'GET /v1/statement/{queryId}/{token}': 'view',
  'DELETE /v1/statement/{queryId}/{token}': 'kill',
  'DELETE /v1/stage/{stageId}/{mac}': 'kill',
  'GET /v1/query': 'people',
  'GET /v1/query/{queryId}': 'view',
  'DELETE /v1/query/{queryId}': 'kill',
  'PUT /v1/query/{queryId}/killed': 'kill',
  'PUT /v1/query/{queryId}/preempted': 'kill',
  'POST /v1/query/{queryId}/forget': 'administrators',
  'GET /v1/query/{queryId}/events': 'view',
  'GET /v1/query/{queryId}/digest': 'view',
  'GET /v1/query/{queryId}/trace': 'view',
  'GET /v1/events': 'people',
  'POST /v1/replay': 'execute',
  'PUT /v1/replay/{replayId}': 'execute',
  'POST /v1/system/rebuilt': 'cluster',
  'POST /v1/system/sightings': 'coordinators',
  'POST /v1/system/anchor-key': 'coordinators',
  'GET /v1/resourceGroupState': 'system',
  'GET /v1/resourceGroupState/{group}': 'system',
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
/** Pages: they hold nothing by themselves. */
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

/** Until it has stages and a page that its owner has had. */
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
  cluster = await startStandbyCluster(guard.env)
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
}, 120_000)

// ---- what must be ----------------------------------------------------------------------------------

interface Asked {
  readonly operation: string
  readonly caller: CallerName
  readonly resource: keyof typeof resources
  readonly by: 'writer' | 'other' | 'worker'
}

/** May he read what is said of the owner's queries? */
function mayRead({ caller, operation }: Asked): boolean {
  const { view, is, outside }: Caller = callers[caller]
  if (is === 'person' && outside === undefined && rights[operation] === 'figures') return true
  // The figures have users and programs by name.
  if (is === 'key') return rights[operation] === 'cluster' || rights[operation] === 'administrators'
  return view === true || (is === 'figures' && rights[operation] === 'figures')
}

/** Statuses that are right. */
function isRight({ operation, caller, resource, by }: Asked, status: number): boolean {
  const right = rights[operation] ?? 'open'
  const { is, view, kill, outside }: Caller = callers[caller]
  const mayNot = is === 'stranger' || is === 'figures' ? 401 : 403
  // What another coordinator passes on to one that follows is not looked at.
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
        return status === (by === 'writer' ? 403 : 404)
      // A coordinator that follows has no such resources of its own.
      return is === 'key'
        ? ![401, 403, 500].includes(status)
        : [401, 404].includes(status) || isWorkers(operation, by, status)
    case 'coordinators':
      return [401, 404].includes(status)
    case 'execute':
      if (is !== 'person' || outside) return status === mayNot
      // An id that nobody was given.
      return operation.startsWith('PUT') ? status === 404 : status < 400
    case 'people':
      return is === 'person' ? status < 400 : status === mayNot
    case 'view':
    case 'kill': {
      if (mayNot === 401) return status === 401
      // That there is no such page, or no such query, everybody may know who is somebody.
      if (resource === 'unknown' || isOver(operation, resource))
        return [404, 403, 410, ...(operation.startsWith('DELETE /v1/query') ? [204] : [])].includes(status)
      // Of what has not ended, or failed, there is none.
      if (is === 'person' && view && operation.endsWith('/digest')) return [200, 404, 409].includes(status)
      if (is === 'person' && (right === 'view' ? view : kill)) return ![401, 403, 404, 500].includes(status)
      return status === 403
    }
  }
}

const ofWorkers = / \/(metrics$|v1\/task|v1\/info)/

/** What only workers have is refused to everybody whom a coordinator knows. */
function isWorkers(operation: string, by: Asked['by'], status: number): boolean {
  return operation === 'DELETE /v1/task' && by !== 'worker' && status === 405
}

/** A stage of a query that has ended is none any more. */
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
    .replace('{logIn}', 'AAAA')
    .replace('{replayId}', '0'.repeat(32))
}

/** Only of what does not end anything for the others: who may end a query gets one of his own. */
async function resourceOf({ operation, caller, resource }: Asked, method: string): Promise<Resource> {
  const { kill, is }: Caller = callers[caller]
  const ends = !['GET', 'HEAD', 'OPTIONS'].includes(method) && operation.includes('{')
  return resource === 'open' && ends && (kill === true || is === 'key') ? openQuery() : resources[resource]
}

const BODIES: Readonly<Record<string, string>> = {
  'POST /v1/statement': 'SELECT 1',
  'PUT /v1/announcement': '{}',
  'PUT /v1/node/{nodeId}/state': '{"state":"SHUTTING_DOWN","by":"somebody"}',
  'POST /v1/system/rebuilt': '{}',
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

/** Marks of the owner's that an answer has, but for the name that its asker wrote himself. */
function leaksIn({ caller }: Asked, { headers, text }: GuardedAnswer): readonly string[] {
  const whole = `${JSON.stringify(headers)}\n${text}`
  const said = JSON.stringify(callersSay[caller] ?? '')
  return Object.values(marks).filter((mark) => whole.includes(mark) && !said.includes(mark))
}
const callersSay: Partial<Record<CallerName, string>> = {
  // What it posted as the owner is its own, too.
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
/** A run of the tests is the same each time; more is looked at by hand. */
const seed = Number(process.env['QUIPU_RIGHTS_SEED'] ?? 17)
const numRuns = Number(process.env['QUIPU_RIGHTS_RUNS'] ?? 200)

/** As a client reads it: its rows, and with what it failed. */
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

describe('who is refused', () => {
  it('is told of in the log: a statement, to be another, a query to see or to end', async () => {
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
    await waitUntil('all of it is told', async () => (await denied()).length >= wanted.length)
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
    'is not told of for what lists and system tables leave out, and sees nothing of it there',
    { timeout: 300_000 },
    async () => {
      const before = await denied()
      for (const by of ['writer', 'other'] as const)
        for (const caller of ['somebody else', 'killer', 'robot', 'viewer', 'friend'] as const)
          for (const table of ['runtime.queries', 'runtime.tasks', 'history.queries', 'history.events']) {
            const { rows, error } = await run(`SELECT * FROM system.${table}`, caller, by)
            expect(error).toBeUndefined()
            const seen = JSON.stringify(rows)
            const mayView = 'view' in callers[caller]
            for (const word of [...Object.values(marks), resources.open.id, resources.failed.id])
              if (!mayView) expect([caller, table, word, seen.includes(word)]).toEqual([caller, table, word, false])
            if (mayView && table.endsWith('.queries')) expect(seen).toContain(marks.text)
          }
      // A feed gives what it has within a moment.
      let after: typeof before = []
      await waitUntil('all is told again', async () => (after = await denied()).length >= before.length)
      expect(after).toEqual(before)
    },
  )
})

describe('who may do what', () => {
  it('is known of every operation that the document describes', () => {
    expect(described.filter((operation) => rights[operation] === undefined)).toEqual([])
    expect(described.length).toBeGreaterThan(30)
  })

  it('is so at every endpoint, by both coordinators', { timeout: 600_000 }, async () => {
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

  it('is so however the address is written, and whatever a client says of it', { timeout: 600_000 }, async () => {
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
          // Nobody is let in by it who was not: what is open stays open, and pages lead to the log-in page.
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

  it('lets those forget a query to whom the rules give it, and tells who did', async () => {
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

  it('left the query alone that only others tried to end', async () => {
    const { status, text } = await askThroughProxy(nodes.writer.url, {
      target: resources.open.page,
      headers: await headersOf('owner'),
    })
    expect([status, text.includes(marks.row)], text.slice(0, 300)).toEqual([200, true])
  })
})

/** Other ways of writing a path, some of which mean another one. */
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

/** What proxies, frameworks and coordinators may say of a request, by somebody who is none of them. */
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
