import { z } from 'zod'
import { Fault, type AttackFamily, type CaseContext } from './attack-case.ts'
import type { AttackBed } from './bed.ts'
import { wellFormed } from './hostile-texts.ts'
import { runStatement } from './statement.ts'
import type { WireRequest } from './wire.ts'

const documentSchema = z.object({
  paths: z.record(
    z.string(),
    z.record(z.string(), z.object({ parameters: z.array(z.object({ name: z.string(), in: z.string() })).optional() })),
  ),
})

interface Endpoint {
  readonly method: string
  /** The path with `{name}` for each parameter. */
  readonly path: string
  readonly query: readonly string[]
}

/** Endpoints that the OpenAPI document does not list: those for programs of the cluster and for browsers. */
const internal: readonly Endpoint[] = [
  { method: 'POST', path: '/v1/system/rebuilt', query: [] },
  { method: 'POST', path: '/v1/system/verified', query: [] },
  { method: 'POST', path: '/v1/query/{queryId}/forget', query: [] },
  { method: 'DELETE', path: '/v1/task', query: [] },
  { method: 'GET', path: '/ui', query: [] },
  { method: 'GET', path: '/ui/{file}', query: [] },
  { method: 'GET', path: '/{anything}', query: ['anything'] },
]

const documents = new WeakMap<AttackBed, Promise<readonly Endpoint[]>>()

/** The endpoints of the OpenAPI document and the internal ones. */
export async function endpointsOf({ bed, wire }: CaseContext): Promise<readonly Endpoint[]> {
  const known =
    documents.get(bed) ??
    (async () => {
      const { text } = await wire.ask(`${bed.coordinators[0].url}/openapi.json`)
      const { paths } = documentSchema.parse(JSON.parse(text))
      const reported = Object.entries(paths).flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, { parameters = [] }]) => ({
          method: method.toUpperCase(),
          path,
          query: parameters.filter((one) => one.in === 'query').map((one) => one.name),
        })),
      )
      return [...reported, ...internal]
    })()
  documents.set(bed, known)
  return known
}

/** Whether an endpoint is the feed of events, which only ends with its connection. */
const isFeed = (endpoint: Endpoint): boolean => endpoint.path === '/v1/events'

/** Requests to any endpoint with random parameters, headers and body, without the key or with a wrong one. */
export const endpoints: AttackFamily = {
  name: 'endpoints',
  weight: 130,
  async run(context) {
    const { random, wire, bed } = context
    const endpoint = random.pick(await endpointsOf(context))
    const { name, url, port } = random.pick(bed.all)
    const target = targetOf(endpoint, context)
    const method = random.chance(0.85)
      ? endpoint.method
      : random.pick(['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS', 'PATCH'])
    const { headers, body } = messageOf(context)
    const request: WireRequest = { method, target, headers, ...(['GET', 'HEAD'].includes(method) ? {} : { body }) }
    if (isFeed(endpoint)) {
      const lines = Object.entries(headers).map(([key, value]) => `${key}: ${value}\r\n`)
      await wire.exchange(port, [
        { bytes: Buffer.from(`${method} ${target} HTTP/1.1\r\nHost: localhost\r\n${lines.join('')}\r\n`) },
      ])
      return
    }
    const { status } = await wire.ask(url, request)
    if (needsKey(endpoint, method) && status < 400)
      throw new Fault(`${method} ${target.slice(0, 200)} at ${name} needs no key: ${status}`)
  },
}

/** Whether a request changes the state of the cluster. Reads of tasks are open on a loopback listener. */
function needsKey(endpoint: Endpoint, method: string): boolean {
  if (['OPTIONS', 'HEAD', 'GET'].includes(method)) return false
  return /^\/v1\/(announcement|task|system|erasure|query\/\{queryId\}\/forget)/.test(endpoint.path)
}

export function targetOf(endpoint: Endpoint, context: CaseContext): string {
  const { random, texts } = context
  const path = endpoint.path.replaceAll(/\{(\w+)\}/g, () => {
    const kind = random.whole(0, 3)
    if (kind === 0) return '20000101_000000_00000_00000'
    if (kind === 1)
      return random.pick(['20000101_000000_00000_00000.1.0', '0', '1', '-1', '99999999999999999999', 'a.b.c', ''])
    return texts.segment()
  })
  const names = [
    ...endpoint.query,
    'asOf',
    'limit',
    'cursor',
    'since',
    'q',
    'state',
    'query',
    'type',
    'before',
    'abort',
    '__proto__',
  ]
  const values = Array.from({ length: random.whole(0, 3) }, () => `${random.pick(names)}=${valueOf()}`)
  return path + (values.length > 0 ? `?${values.join('&')}` : '')

  function valueOf(): string {
    const kind = random.whole(0, 4)
    if (kind === 0)
      return random.pick([
        '0',
        '1',
        '-1',
        '1e9',
        '1000',
        '99999999999',
        'NaN',
        'FINISHED',
        'FAILED,RUNNING',
        'true',
        '',
      ])
    if (kind === 1)
      return random.pick([
        '2026-01-01T00:00:00Z',
        '+275760-09-13T00:00:00.001Z',
        '-271821-04-20T00:00:00Z',
        '2026-99-99',
        '0000-00-00T00:00:00Z',
      ])
    if (kind === 2) return encodeURIComponent(random.pick(['%', '_', '\\', '%%%%%%%%%%', "'", '%_%_%_%']))
    return texts.segment()
  }
}

export function messageOf(context: CaseContext): { headers: Record<string, string>; body: Buffer } {
  const { random, texts, bed } = context
  const headers: Record<string, string> = {}
  if (random.chance(0.5)) {
    headers['authorization'] = random.pick([
      `Bearer ${bed.bearer.slice(1)}0`,
      `bearer ${'0'.repeat(64)}`,
      `Basic ${bed.bearer}`,
      `Bearer  ${bed.bearer.slice(0, -1)}`,
      `Bearer ${texts.header()}`,
      'Bearer',
    ])
  }
  if (random.chance(0.4)) {
    headers['x-engine-epoch'] = random.pick([
      '999999999999999',
      '0',
      '1',
      '-1',
      '1e3',
      '18446744073709551616',
      texts.header(),
    ])
  }
  if (random.chance(0.3))
    headers['x-engine-max-wait'] = random.pick(['0ms', '1ns', '5ms', '-1s', '1e9s', texts.header()])
  if (random.chance(0.3))
    headers['accept'] = random.pick([
      '*/*',
      'application/json',
      'text/html',
      'application/vnd.quipu.task-status+json',
      texts.header(),
    ])
  if (random.chance(0.2)) headers['x-quipu-relayed-by'] = random.pick([`${bed.bearer.slice(1)}0`, texts.header()])
  if (random.chance(0.2)) headers['x-trino-user'] = texts.header()
  if (random.chance(0.1)) headers['last-event-id'] = random.pick(['0', '99999999999', texts.header()])
  if (random.chance(0.1)) headers['x-forwarded-proto'] = texts.header()
  const kind = random.whole(0, 3)
  const body =
    kind === 0 ? Buffer.from('{}') : kind === 1 ? texts.bytes(500) : Buffer.from(JSON.stringify(jsonOf(context, 0)))
  return { headers, body }
}

/** Random JSON with field names that a server knows. */
function jsonOf(context: CaseContext, depth: number): unknown {
  const { random, texts } = context
  const kind = depth > 3 ? random.whole(0, 3) : random.whole(0, 5)
  if (kind <= 1) return texts.json()
  if (kind === 2) return random.pick([0, -1, 1e308, 2 ** 53, 0.1, null, true])
  if (kind === 3) return random.pick(['20000101_000000_00000_00000.1.0', 'http://127.0.0.1:1', ''])
  if (kind === 4) return Array.from({ length: random.whole(0, 4) }, () => jsonOf(context, depth + 1))
  const keys = [
    'nodeId',
    'url',
    'version',
    'cores',
    'by',
    'events',
    'milliseconds',
    'taskIds',
    'session',
    'fragment',
    'splits',
    '__proto__',
  ]
  return Object.fromEntries(
    Array.from({ length: random.whole(0, 6) }, () => [random.pick(keys), jsonOf(context, depth + 1)]),
  )
}

/** Changed page addresses of a statement: none may return a page. */
export const pageAddresses: AttackFamily = {
  name: 'addresses of pages',
  weight: 40,
  async run(context) {
    const { random, wire, bed, texts } = context
    const base = random.pick(bed.coordinators).url
    const { status, text } = await wire.ask(`${base}/v1/statement`, {
      body: random.pick(['SELECT 1', 'SELECT * FROM tpch.tiny.nation', 'SELECT count(*) FROM tpch.tiny.orders']),
      headers: { 'x-trino-user': 'attack' },
    })
    if (status !== 200) throw new Fault(`a statement is refused: ${status}`)
    const { nextUri, id } = JSON.parse(text) as { nextUri?: string; id: string }
    // The statement ended in the answer to POST.
    if (nextUri === undefined) return
    const segments = new URL(nextUri).pathname.split('/')
    const at = random.whole(2, segments.length - 1)
    const was = segments[at]!
    segments[at] = random.pick([
      was.slice(0, -1) + (was.endsWith('0') ? '1' : '0'),
      was.toUpperCase() === was ? was.toLowerCase() : was.toUpperCase(),
      `${was}0`,
      was.slice(1),
      texts.segment(),
      '99999999999999999999',
      '-1',
      '',
    ])
    const method = random.pick(['GET', 'DELETE', 'HEAD', 'PUT'])
    const forged = await wire.ask(base, { method, target: segments.join('/') })
    if (method !== 'HEAD' && segments[at] !== was && forged.status < 300 && forged.text.includes(id)) {
      throw new Fault(`${method} of a forged address is answered with ${forged.status}`)
    }
    // The client with the correct address can still read to the end.
    for (let next: string | undefined = nextUri; next !== undefined;) {
      const answer = await wire.ask(next)
      if (answer.status !== 200) throw new Fault(`GET of nextUri beside a forged one: ${answer.status}`)
      next = (JSON.parse(answer.text) as { nextUri?: string }).nextUri
    }
  },
}

/** Invalid requests with the correct key, as from a defective program of the cluster. */
export const keyedNonsense: AttackFamily = {
  name: 'nonsense with the key',
  weight: 40,
  async run(context) {
    const { random, wire, bed } = context
    const headers = { authorization: `Bearer ${bed.bearer}` }
    const id = '20000101_000000_00000_00000'
    const body = Buffer.from(JSON.stringify(jsonOf(context, 0)))
    const { method, url, target, ...rest } = random.pick([
      {
        method: 'PUT',
        url: random.pick(bed.coordinators).url,
        target: '/v1/announcement',
        body: noAnnouncement(context),
      },
      {
        method: 'DELETE',
        url: random.pick(bed.coordinators).url,
        target: `/v1/announcement/${context.texts.segment()}`,
      },
      { method: 'POST', url: bed.coordinators[0].url, target: `/v1/query/${id}/forget`, body },
      { method: 'POST', url: bed.worker.url, target: `/v1/task/${id}.1.0`, body },
      { method: 'DELETE', url: bed.worker.url, target: `/v1/task/${context.texts.segment()}` },
      { method: 'GET', url: bed.worker.url, target: `/v1/task/${id}.1.0/results/0/${random.whole(0, 9)}` },
      { method: 'DELETE', url: bed.worker.url, target: '/v1/task', body },
      // An impossible epoch: it must stop no coordinator.
      {
        method: 'GET',
        url: bed.worker.url,
        target: '/v1/task',
        epoch: random.pick(['999999999999999', '99999999999']),
      },
    ] as const)
    const epoch = 'epoch' in rest ? { 'x-engine-epoch': rest.epoch } : {}
    const sent = 'body' in rest ? { body: rest.body } : {}
    const { status } = await wire.ask(url, { method, target, headers: { ...headers, ...epoch }, ...sent })
    if ('epoch' in rest && status < 300) throw new Fault(`an epoch of ${rest.epoch} is accepted`)
  },
}

/** An announcement with one invalid field. */
function noAnnouncement(context: CaseContext): Buffer {
  const { random, texts } = context
  const announcement: Record<string, unknown> = {
    nodeId: 'nobody',
    url: 'http://127.0.0.1:1',
    version: '0',
    cores: 1,
    memoryBytes: 1,
    epochSeen: 1,
  }
  const field = random.pick(['nodeId', 'url', 'version', 'cores', 'memoryBytes', 'epochSeen'])
  announcement[field] = random.pick<unknown>([undefined, null, [], {}, { toString: texts.json() }])
  return Buffer.from(JSON.stringify(announcement))
}

/** Reads a query with hostile texts in every form, after the texts went through log and read models. */
export const reads: AttackFamily = {
  name: 'reads of hostile statements',
  weight: 30,
  async run(context) {
    const { random, wire, bed, texts } = context
    const ran = await runStatement(
      context,
      `SELECT '${texts.statement().replaceAll("'", "''")}' FROM ${random.pick(['region', '"nowhere"'])}`,
      {
        'x-trino-user': wellFormed(texts.header().slice(0, 60)),
        'x-trino-source': wellFormed(texts.header().slice(0, 60)),
        'x-trino-catalog': 'tpch',
        'x-trino-schema': 'tiny',
      },
    )
    if (!ran) return
    const path = random.pick(['', '/events', '/trace', '?asOf=1', '?asOf=2', '?pretty=true'])
    const { status, text } = await wire.ask(`${random.pick(bed.coordinators).url}/v1/query/${ran.id}${path}`)
    // The following coordinator may not know the end of the query yet.
    if (status !== 200 && !(path === '/trace' && status === 409)) throw new Fault(`GET /v1/query/…${path}: ${status}`)
    if (status === 200) JSON.parse(text)
  },
}
