import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import type {
  Cluster,
  ClusterDirectory,
  ClusterSlot,
  ClusterView,
} from '../../../../src/coordinator/clusters/cluster.ts'
import {
  AnswerNotRead,
  ClusterLost,
  type RelayPort,
  type RemoteAnswer,
  type RemoteTail,
  type RemoteUri,
} from '../../../../src/coordinator/clusters/relay/relay-port.ts'
import { createAddressSeal, type RelayedPage } from '../../../../src/coordinator/clusters/relay/sealed-address.ts'
import { createThreadedFrontEnd } from '../../../../src/coordinator/front-end-threads/threaded-front-end.ts'
import { createClusterCatalogs } from '../../../../src/coordinator/clusters/metadata/cluster-catalogs.ts'
import { createTrinoConnector } from '../../../../src/connectors/trino/trino-connector.ts'
import type { Delegation } from '../../../../src/coordinator/query/execution/delegation.ts'
import type { QueryEvent } from '../../../../src/coordinator/query/stream/events.ts'
import type { KnownQuery } from '../../../../src/coordinator/query/stream/state.ts'
import type { StatementAnswer } from '../../../../src/coordinator/query/results/statement-answer.ts'
import type { RightsOf } from '../../../../src/sql/access-control.ts'
import { createStatementPlanner } from '../../../../src/planner/statement-planner.ts'
import { parseRulesFile } from '../../../../src/security/rules/rules-file.ts'
import { Unstorable } from '../../../../src/events/event-log.ts'
import { answerText } from '../../../../src/protocol/statement/query-results.ts'
import { createStatementUris } from '../../../../src/protocol/statement/next-uri.ts'
import { EngineError } from '../../../../src/shared/engine-error.ts'
import { deferred } from '../../../../src/shared/deferred.ts'
import type { ClusterName } from '../../../../src/shared/ids.ts'
import { createStatementBed, MemoryLog } from '../../../support/statement-bed.ts'

const clusterNamed = (name: string): ClusterView =>
  ({
    name: name as ClusterName,
    url: new URL(`http://${name}`),
    group: 'big',
    weight: 1,
    catalogs: new Set(['hive']),
    mirrors: new Set(),
    runAs: 'caller',
    enforcesAccess: false,
    clientTimeoutMs: 60_000,
    state: 'ACTIVE',
    health: 'HEALTHY',
  }) as Partial<ClusterView> as ClusterView

type Step = 'empty' | 'rows' | 'finished' | 'last' | 'lost' | 'passed' | 'fails'

interface Script {
  /** The answers to each GET at a cluster, in their order. */
  readonly [cluster: string]: readonly Step[]
}

/** The number of `queued` answers of a statement. */
const QUEUED = 2

const CAUSES = { type: 'x.Outer', message: 'no', cause: { type: 'x.Inner', message: 'the disk is full' } }

/** @param isCounted whether the relay counts the rows, as it does with those of small answers */
function answerOf(step: Step, at: number, isCounted = false): RemoteAnswer {
  const tail: RemoteTail = {
    stats: { state: step === 'finished' ? 'FINISHED' : 'RUNNING' },
    warnings: [],
    rowsBytes: 3,
    ...(isCounted && { rows: 1 }),
    ...(step === 'fails' && {
      error: {
        message: 'no',
        errorCode: 7,
        errorName: 'ODD_CONNECTOR_ERROR',
        errorType: 'EXTERNAL',
        failureInfo: CAUSES,
      },
    }),
  }
  async function* rows() {
    yield Buffer.from(`[[${at}]]`)
  }
  return {
    head: {
      id: 'remote',
      ...((step === 'empty' || step === 'rows' || step === 'finished') && {
        nextUri:
          `/v1/statement/${step === 'empty' && at + 1 < QUEUED ? 'queued' : 'executing'}/remote/${at + 1}` as RemoteUri,
        partialCancelUri: `/v1/statement/partialCancel/remote/${at}` as RemoteUri,
      }),
    },
    headers: [],
    data: step === 'fails' || step === 'empty' ? undefined : rows(),
    tail: Promise.resolve(tail),
  }
}

/**
 * A coordinator with two clusters that answer as the script says.
 * @param columns the rows of the clusters' `information_schema.columns`; absent: the clusters do not give them
 */
function bedOf(
  script: Script,
  rightsOf?: RightsOf,
  {
    fetch,
    columns,
    post,
    holdMs = 0,
    isCounted = false,
  }: {
    readonly fetch?: RelayPort['fetch']
    readonly columns?: readonly (readonly unknown[])[] | Promise<never>
    /** A POST is answered after this. */
    readonly post?: Promise<void>
    /** How long QueryCreated is held. */
    readonly holdMs?: number
    readonly isCounted?: boolean
  } = {},
) {
  const log = new MemoryLog()
  const clusters = Object.keys(script).map(clusterNamed)
  const posted: string[] = []
  const canceled: string[] = []
  const left: string[] = []
  const gets = new Map<string, number>()
  /** How many GETs there were before each request for figures. */
  const figuresAfter: number[] = []
  /** How many POSTs there were before each read of metadata. */
  const metadataAfter: number[] = []
  const relay: RelayPort = {
    async post({ name }) {
      posted.push(name)
      await post
      return { remoteId: 'remote', uri: '/v1/statement/queued/remote/0' as RemoteUri }
    },
    async fetch({ name }, uri, signal) {
      gets.set(name, (gets.get(name) ?? 0) + 1)
      const at = Number(uri.split('/').at(-1))
      const step = script[name]![at]!
      if (fetch) return fetch(clusterNamed(name), uri, signal)
      if (step === 'lost') throw new ClusterLost(name, 'unreachable', 'does not answer')
      if (step === 'passed') throw new ClusterLost(name, 'passed', 'a later page was asked for')
      return answerOf(step, at, isCounted)
    },
    keepAlive: async () => 'alive',
    cancel: async ({ name }, uri) => void canceled.push(uri.includes('/partialCancel/') ? `${name} ${uri}` : name),
    async figures() {
      figuresAfter.push([...gets.values()].reduce((sum, count) => sum + count, 0))
      return { state: 'FINISHED', outputRows: 42 }
    },
  }
  const slotAt = (cluster: Cluster): ClusterSlot => {
    let isLeft = false
    return {
      cluster,
      leave() {
        if (!isLeft) left.push(cluster.name)
        isLeft = true
      },
    }
  }
  const directory: Partial<ClusterDirectory> = {
    ready: Promise.resolve(),
    list: () => clusters,
    adopt(name) {
      const cluster = clusters.find((one) => one.name === name)
      return cluster && slotAt(cluster)
    },
    async slot(_target, { avoid }) {
      const cluster: Cluster = clusters.find(({ name }) => name !== avoid) ?? clusters[0]!
      return slotAt(cluster)
    },
  }
  const delegation: Delegation = {
    clusters: directory as ClusterDirectory,
    relay,
    seal: createAddressSeal(Buffer.alloc(32, 3)),
    clock: { now: () => Date.now(), monotonicMs: () => performance.now() },
    rules: () => [],
    catalogs: createClusterCatalogs({
      clusters: { list: () => clusters },
      local: { names: () => ['tpch'], get: () => undefined },
      connect: createTrinoConnector,
      withinMs: () => 600_000,
      runOnCluster: ({ name }, sql) =>
        Promise.resolve(columns ?? []).then((rows) => {
          metadataAfter.push(posted.length)
          if (!columns || !sql.includes('.columns ')) throw new ClusterLost(name, 'unreachable', 'does not answer')
          return rows
        }),
      now: () => performance.now(),
    }),
  }
  // Without a limit of time here, a busy machine needs no thread.
  const frontEnd = createThreadedFrontEnd(
    { run: () => Promise.reject(new Error('no thread')) },
    createStatementPlanner(),
  )
  const bed = createStatementBed({
    log,
    deps: {
      firstAppendHoldMs: holdMs,
      delegation,
      catalogs: delegation.catalogs,
      frontEnd,
      objectsOf: () => rightsOf,
      filesInForce: () => FILES,
    },
  })
  return { ...bed, log, posted, canceled, left, gets, figuresAfter, metadataAfter }
}

type Bed = ReturnType<typeof bedOf>

async function textOf(data: AsyncIterable<Buffer> | undefined): Promise<string> {
  let text = ''
  if (data) for await (const part of data) text += part.toString()
  return text
}

/** Follows a statement as a client does. @returns the rows of each answer, and the last answer */
async function follow(
  bed: Bed,
  sql: string,
): Promise<{ readonly rows: readonly string[]; readonly last: StatementAnswer }> {
  const { queryId } = await bed.submit(sql)
  const rows: string[] = []
  let relayed: Extract<StatementAnswer, { kind: 'relayed' }>['next']
  for (let token = 0; ;) {
    const answer = await bed.service.poll(queryId, token, 1_000, relayed)
    if (answer.kind === 'relayed') {
      const text = await textOf(answer.data)
      if (text) rows.push(text)
      if (!answer.next) return { rows, last: answer }
      token++
      relayed = answer.next
    } else if (answer.kind !== 'answer' || answer.nextToken === undefined) return { rows, last: answer }
  }
}

/** Continues a statement after a restart. */
async function resumed(bed: Bed, events: readonly QueryEvent[]) {
  const execution = bed.resume(events)
  await expect.poll(() => execution.remote).toBeDefined()
  const { aggregate } = execution
  const poll = (token: number, relayed: RelayedPage | undefined) =>
    execution.remote!.poll({ query: aggregate.state as KnownQuery, token, relayed, waitMs: 1_000, onRead: () => {} })
  return { poll, aggregate }
}

const relayedOf = (answer: StatementAnswer | undefined) => {
  if (answer?.kind !== 'relayed') throw new Error(`not relayed: ${answer?.kind}`)
  return answer
}

async function pollUntilRelayed(poll: () => Promise<StatementAnswer>) {
  for (;;) {
    const answer = await poll()
    if (answer.kind !== 'answer' || answer.nextToken === undefined) return relayedOf(answer)
  }
}

/** Answers of three parts, which end when they are read or aborted. `most` is the most of them at the same time. */
function openAnswers({ last = Infinity, partBytes = 0 } = {}) {
  let open = 0
  const state = { most: 0, fetch }
  async function fetch(_cluster: unknown, uri: RemoteUri, signal: AbortSignal): Promise<RemoteAnswer> {
    const at = Number(uri.split('/').at(-1))
    state.most = Math.max(state.most, ++open)
    const tail = deferred<RemoteTail>()
    let isOpen = true
    const close = (): void => {
      if (isOpen) open--
      isOpen = false
    }
    tail.promise.then(close, close)
    signal.addEventListener('abort', () => {
      close()
      tail.reject(signal.reason)
    })
    const parts = partBytes > 0 ? ['[', ...Array.from({ length: 3 }, () => 'x'.repeat(partBytes)), ',0]'] : undefined
    const left = parts ?? [`[[${at}],`, `[${at}],`, `[${at}]]`]
    const data: AsyncIterable<Buffer> = {
      [Symbol.asyncIterator]: () => ({
        async next() {
          signal.throwIfAborted()
          const part = left.shift()
          if (part !== undefined) return { done: false, value: Buffer.from(part) }
          tail.resolve({ stats: { state: 'RUNNING' }, warnings: [], rowsBytes: 120_004 })
          return { done: true, value: undefined }
        },
        async return() {
          tail.reject(new AnswerNotRead('a'))
          return { done: true, value: undefined }
        },
      }),
    }
    const nextUri = at === last ? {} : { nextUri: `/v1/statement/executing/remote/${at + 1}` as RemoteUri }
    return { head: { id: 'remote', ...nextUri }, headers: [], data, tail: tail.promise }
  }
  return state
}

const failureOf = (answer: StatementAnswer) => (answer.kind === 'answer' ? answer.failure : undefined)
const FILES = { 'routing-rules': 'ab12' }
const READ = 'SELECT * FROM hive.s.t'
const WRITE = 'INSERT INTO hive.s.t SELECT 1'
/** The columns of the table at the clusters. */
const COLUMNS = [
  ['t', 'a', 'bigint', 'YES', null, null],
  ['t', 'b', 'varchar', 'YES', null, null],
  ['t', 'odd', 'objectid', 'YES', null, null],
]

describe('A delegated statement', () => {
  it('has the pages of its cluster, and its end is in the log before the last one is sent', async () => {
    const bed = bedOf({ a: ['rows', 'rows', 'last'] })
    const { rows, last } = await follow(bed, READ)
    expect(rows).toEqual(['[[0]]', '[[1]]', '[[2]]'])
    expect(last.kind).toBe('relayed')
    const [stream] = [...bed.log.streams.values()]
    expect(stream!.map(({ type }) => type)).toEqual([
      'QueryCreated',
      'QueryPlanned',
      'TaskCreated',
      'TaskFinished',
      'QueryFinished',
    ])
    expect(stream![1]!.data).toMatchObject({ route: 'delegated', files: FILES })
    expect(bed.left).toEqual(['a'])
    expect(bed.canceled).toEqual([])
  })

  it('has its plan and its task in the append of its creation if the cluster answers the POST soon', async () => {
    const bed = bedOf({ a: ['last'] }, undefined, { holdMs: 60_000 })
    await bed.submit(READ)
    expect(bed.log.appends.map(({ types }) => types)).toEqual([['QueryCreated', 'QueryPlanned', 'TaskCreated']])
  })

  it('is analysed while the cluster answers the POST', async () => {
    const bed = bedOf({ a: ['last'] }, undefined, { columns: COLUMNS.slice(0, 2) })
    await follow(bed, 'SELECT a FROM hive.s.t')
    expect(new Set(bed.metadataAfter)).toEqual(new Set([1]))
    const [stream] = [...bed.log.streams.values()]
    expect(stream![1]!.data).toMatchObject({ routed: { grade: 'analysed' }, route: 'delegated' })
  })

  it('frees its slot if it is canceled while it is analysed', async () => {
    const bed = bedOf({ a: ['last'] }, undefined, { columns: new Promise(() => {}) })
    const submitted = bed.submit('SELECT a FROM hive.s.t')
    await expect.poll(() => bed.posted).toEqual(['a'])
    await [...bed.registry.list()][0]!.cancel()
    await submitted
    await expect.poll(() => bed.left).toEqual(['a'])
    expect(bed.gets.get('a')).toBeUndefined()
  })

  it('is created while the cluster does not answer the POST', async () => {
    const bed = bedOf({ a: ['last'] }, undefined, { holdMs: 60_000, post: new Promise(() => {}) })
    await bed.submit(READ)
    expect(bed.log.appends.map(({ types }) => types)).toEqual([['QueryCreated']])
  })

  it('is posted once to a cluster that refuses it', async () => {
    const refusal = Promise.reject(new ClusterLost('a', 'refused', 'it answered with HTTP 401'))
    refusal.catch(() => {})
    const bed = bedOf({ a: ['last'] }, undefined, { post: refusal })
    const { last } = await follow(bed, READ)
    expect(failureOf(last)).toMatchObject({ errorName: 'REMOTE_HOST_GONE' })
    expect(bed.posted).toEqual(['a'])
    expect(bed.left).toEqual(['a', 'a'])
  })

  it('records an address by which a successor can keep it alive, if it runs for longer', async () => {
    const bed = bedOf({ a: ['rows', 'last'] })
    const { queryId } = await bed.submit(READ)
    await bed.service.poll(queryId, 0, 1_000)
    await expect.poll(() => bed.log.typesOf(queryId)).toContain('QueryProgressed')
  })

  it('reads the figures of its cluster as soon as it has finished there', async () => {
    const bed = bedOf({ a: ['rows', 'finished', 'last'] })
    const { last } = await follow(bed, READ)
    expect(bed.figuresAfter).toEqual([2])
    expect(last.kind).toBe('relayed')
    const [stream] = [...bed.log.streams.values()]
    expect(stream!.at(-1)).toMatchObject({ type: 'QueryFinished', data: { rows: 42 } })
  })

  it('ends without a request for figures if the relay counted its rows, each page once', async () => {
    const bed = bedOf({ a: ['rows', 'finished', 'last'] }, undefined, { isCounted: true })
    const { queryId } = await bed.submit(READ)
    let next: RelayedPage | undefined
    for (let token = 0; token < 3; token++) {
      const polled = () => bed.service.poll(queryId, token, 1_000, next)
      await textOf(relayedOf(await polled()).data)
      // The client lost the answer.
      const again = relayedOf(await polled())
      await textOf(again.data)
      next = again.next
    }
    expect(bed.figuresAfter).toEqual([])
    const [stream] = [...bed.log.streams.values()]
    expect(stream!.at(-1)).toMatchObject({ type: 'QueryFinished', data: { rows: 3, bytes: 9 } })
  })

  it('runs again at another cluster if the first is lost before it sent rows', async () => {
    const bed = bedOf({ a: ['lost'], b: ['rows', 'last'] })
    const { rows } = await follow(bed, READ)
    expect(rows).toEqual(['[[0]]', '[[1]]'])
    expect(bed.posted).toEqual(['a', 'b'])
    expect(bed.canceled).toEqual(['a'])
    expect(bed.left).toEqual(['a', 'b'])
  })

  it('fails if its cluster is lost after a restart of this server, which may have sent rows before', async () => {
    const before = bedOf({ a: ['rows', 'last'] })
    const { queryId } = await before.submit(READ)
    await before.service.poll(queryId, 0, 1_000)
    const [events] = [...before.log.streams.values()]
    const bed = bedOf({ a: ['lost'], b: ['last'] })
    const { poll, aggregate } = await resumed(bed, events as unknown as readonly QueryEvent[])
    await poll(0, undefined)
    await expect.poll(() => aggregate.state.kind).toBe('FAILED')
    expect(aggregate.state).toMatchObject({ failure: { errorName: 'REMOTE_HOST_GONE' } })
    expect(bed.posted).toEqual([])
  })

  it('fails, and names its cluster, if that is lost after it sent rows', async () => {
    const bed = bedOf({ a: ['rows', 'lost'], b: ['last'] })
    const { rows, last } = await follow(bed, READ)
    expect(rows).toEqual(['[[0]]'])
    expect(failureOf(last)).toMatchObject({ errorName: 'REMOTE_HOST_GONE' })
    expect(failureOf(last)!.message).toMatch(/^Cluster a: .*A part of the result had been sent/)
    expect(bed.posted).toEqual(['a'])
  })

  it('never runs twice if it changes something: its outcome is unknown if its cluster is lost', async () => {
    const bed = bedOf({ a: ['lost'], b: ['last'] })
    const { last } = await follow(bed, WRITE)
    expect(failureOf(last)!.message).toMatch(/^Cluster a: .*not known whether the statement was carried out/)
    expect(bed.posted).toEqual(['a'])
  })

  it('has an unknown outcome if it changes something, and its cluster is lost after a restart of this server', async () => {
    const before = bedOf({ a: ['rows', 'last'] })
    const { queryId } = await before.submit(WRITE)
    await before.service.poll(queryId, 0, 1_000)
    const [events] = [...before.log.streams.values()]
    const bed = bedOf({ a: ['lost'], b: ['last'] })
    const { poll, aggregate } = await resumed(bed, events as unknown as readonly QueryEvent[])
    await poll(0, undefined)
    await expect.poll(() => aggregate.state.kind).toBe('FAILED')
    expect(aggregate.state).toMatchObject({
      failure: {
        errorName: 'REMOTE_HOST_GONE',
        message: expect.stringMatching(/^Cluster a: .*not known whether the statement was carried out/),
      },
    })
    expect(bed.posted).toEqual([])
  })

  it('has an unknown outcome if it changes something, and its cluster is gone from the files after a restart', async () => {
    const before = bedOf({ a: ['rows', 'last'] })
    const { queryId } = await before.submit(WRITE)
    await before.service.poll(queryId, 0, 1_000)
    const [events] = [...before.log.streams.values()]
    const { aggregate } = bedOf({ b: ['last'] }).resume(events as unknown as readonly QueryEvent[])
    await expect.poll(() => aggregate.state.kind).toBe('FAILED')
    expect(aggregate.state).toMatchObject({
      failure: { message: expect.stringMatching(/^Cluster a: .*no longer configured.*not known whether/) },
    })
  })

  it('keeps the address of its client while a page is not there yet, so that no rows come under two addresses', async () => {
    let asked = 0
    const same = '/v1/statement/queued/remote/0' as RemoteUri
    const fetch: RelayPort['fetch'] = async (_cluster, uri) => {
      const answer = answerOf('rows', Number(uri.split('/').at(-1)))
      return ++asked > 3 ? answer : { ...answer, head: { id: 'remote', nextUri: same }, data: undefined }
    }
    const bed = bedOf({ a: [] }, undefined, { fetch })
    const { queryId } = await bed.submit(WRITE)
    // The page comes at the fourth request.
    const waiting = await bed.service.poll(queryId, 0, 0)
    expect(waiting).toMatchObject({ kind: 'answer', nextToken: 0 })
    const { data, next } = await pollUntilRelayed(() => bed.service.poll(queryId, 0, 1_000))
    expect(await textOf(data)).toBe('[[0]]')
    expect(asked).toBe(4)
    expect(next).toMatchObject({ uri: '/v1/statement/executing/remote/1' })
  })

  it('fails with the name, the code and the type that its cluster gives', async () => {
    const { last } = await follow(bedOf({ a: ['fails'] }), READ)
    expect(failureOf(last)).toMatchObject({
      message: 'no',
      remote: { cluster: 'a', errorName: 'ODD_CONNECTOR_ERROR', errorCode: 7, errorType: 'EXTERNAL' },
    })
    if (last.kind !== 'answer') throw new Error('not the answer of a failed query')
    const view = { initial: false, now: 0, ...last }
    const { error } = z
      .object({ error: z.object({ message: z.string(), failureInfo: z.unknown() }) })
      .parse(JSON.parse(answerText(view, createStatementUris('secret'), false).head))
    expect(error).toMatchObject({ message: 'no', failureInfo: CAUSES })
  })

  it('fails, and is canceled at its cluster, if there is no memory for its answer', async () => {
    const fetch: RelayPort['fetch'] = () => Promise.reject(new EngineError('EXCEEDED_GLOBAL_MEMORY_LIMIT', 'no memory'))
    const bed = bedOf({ a: [] }, undefined, { fetch })
    const { last } = await follow(bed, READ)
    expect(failureOf(last)).toMatchObject({ errorName: 'EXCEEDED_GLOBAL_MEMORY_LIMIT' })
    await expect.poll(() => bed.canceled).toEqual(['a'])
    await expect.poll(() => bed.left).toEqual(['a'])
  })

  it('has its answers without rows fetched before its client asks, and gives the last of them again', async () => {
    const bed = bedOf({ a: ['empty', 'empty', 'empty', 'rows', 'last'] })
    const { queryId } = await bed.submit(READ)
    const answers = await Promise.all([bed.service.poll(queryId, 0, 1_000), bed.service.poll(queryId, 0, 1_000)])
    answers.push(await bed.service.poll(queryId, 0, 1_000))
    const next = { attempt: 0, cluster: 'a', uri: '/v1/statement/executing/remote/3', rowsSent: false }
    // A client that has rows could repeat its first request after a restart, at which the read runs again.
    for (const answer of answers) expect(relayedOf(answer)).toMatchObject({ next, data: undefined })
    // The rows are fetched, and wait for the client.
    expect(bed.gets.get('a')).toBe(4)
    const rows = relayedOf(await bed.service.poll(queryId, 1, 1_000, relayedOf(answers[0]).next))
    expect(await textOf(rows.data)).toBe('[[3]]')
    expect(bed.gets.get('a')).toBe(4)
    expect(await bed.service.poll(queryId, 0, 0)).toEqual({ kind: 'gone' })
    expect(relayedOf(await bed.service.poll(queryId, 2, 1_000, rows.next)).next).toBeUndefined()
  })

  it('gives its last answer to the second request, whose address a successor can ask again', async () => {
    const bed = bedOf({ a: ['empty', 'empty', 'last'] })
    const { queryId } = await bed.submit(READ)
    const first = await pollUntilRelayed(() => bed.service.poll(queryId, 0, 1_000))
    expect(first).toMatchObject({ next: { uri: '/v1/statement/executing/remote/2', rowsSent: false }, data: undefined })
    const last = relayedOf(await bed.service.poll(queryId, 1, 1_000, first.next))
    expect(await textOf(last.data)).toBe('[[2]]')
    expect(last.next).toBeUndefined()
    expect(bed.gets.get('a')).toBe(3)
  })

  it('gives each answer to its client if it changes something', async () => {
    const bed = bedOf({ a: ['empty', 'empty', 'last'] })
    const { queryId } = await bed.submit(WRITE)
    const first = await pollUntilRelayed(() => bed.service.poll(queryId, 0, 1_000))
    expect(first.next).toMatchObject({ uri: '/v1/statement/queued/remote/1' })
    expect(bed.gets.get('a')).toBe(1)
  })

  it('begins at its cluster while its events are appended if it only reads, but gives no answer before they are valid', async () => {
    const appended = deferred()
    const bed = bedOf({ a: ['empty', 'rows', 'last'] })
    bed.log.settle = () => appended.promise
    let isAnswered = false
    const submitted = bed.submit(READ).finally(() => (isAnswered = true))
    await expect.poll(() => bed.gets.get('a')).toBe(2)
    expect(isAnswered).toBe(false)
    appended.resolve()
    const { queryId } = await submitted
    const first = relayedOf(await bed.service.poll(queryId, 0, 1_000))
    expect(await textOf(relayedOf(await bed.service.poll(queryId, 1, 1_000, first.next)).data)).toBe('[[1]]')
    expect(bed.gets.get('a')).toBe(2)
  })

  it('begins at its cluster once its events are in the log if it changes something', async () => {
    const appended = deferred()
    const bed = bedOf({ a: ['empty', 'last'] })
    const { queryId } = await bed.submit(WRITE)
    bed.log.settle = () => appended.promise
    const polled = bed.service.poll(queryId, 0, 10_000)
    await expect.poll(() => bed.log.typesOf(queryId)).toContain('TaskCreated')
    expect(bed.gets.get('a')).toBeUndefined()
    appended.resolve()
    relayedOf(await polled)
    expect(bed.gets.get('a')).toBe(1)
  })

  it('is canceled at its cluster if the log does not take its events', async () => {
    const bed = bedOf({ a: ['empty', 'rows', 'last'] }, undefined, { holdMs: 60_000 })
    bed.log.refuse = () => new Unstorable('not these')
    await expect(bed.submit(READ)).rejects.toThrow('not these')
    // Its slot is free once the cluster has answered. Two causes end it: the refusal and the end of the query.
    await expect.poll(() => bed.left).toContain('a')
    expect(bed.canceled).toEqual(['a'])
  })

  it('frees its slot if its creation fails while the cluster answers the POST', async () => {
    const post = deferred()
    const bed = bedOf({ a: ['rows', 'last'] }, undefined, { post: post.promise, holdMs: 60_000 })
    bed.log.refuse = () => new Unstorable('not these')
    await expect(bed.submit(READ)).rejects.toThrow('not these')
    post.resolve()
    await expect.poll(() => bed.left).toEqual(['a'])
    expect(bed.gets.get('a')).toBeUndefined()
  })

  it('gives its client an answer without rows as soon as the next one takes long, and asks the cluster once for that', async () => {
    const rows = deferred()
    const bed: Bed = bedOf({ a: [] }, undefined, {
      fetch: async (_cluster, uri) => {
        const at = Number(uri.split('/').at(-1))
        if (at === 3) await rows.promise
        return answerOf(at < 3 ? 'empty' : at === 3 ? 'rows' : 'last', at)
      },
    })
    const { queryId } = await bed.submit(READ)
    const first = relayedOf(await bed.service.poll(queryId, 0, 60_000))
    expect(first.next!.uri).toBe('/v1/statement/executing/remote/3')
    expect(relayedOf(await bed.service.poll(queryId, 0, 60_000)).next).toEqual(first.next)
    const second = bed.service.poll(queryId, 1, 60_000, first.next)
    rows.resolve()
    expect(await textOf(relayedOf(await second).data)).toBe('[[3]]')
    expect(bed.gets.get('a')).toBe(4)
    const last = relayedOf(await bed.service.poll(queryId, 2, 60_000, relayedOf(await second).next))
    expect(last.next).toBeUndefined()
    expect(bed.gets.get('a')).toBe(5)
  })

  it('runs again if this server was killed after it had fetched the first answers', async () => {
    const before = bedOf({ a: ['empty', 'empty', 'rows', 'last'] })
    const { queryId } = await before.submit(READ)
    await before.service.poll(queryId, 0, 1_000)
    const [events] = [...before.log.streams.values()]
    const bed = bedOf({ a: ['passed'], b: ['rows', 'last'] })
    const { poll } = await resumed(bed, events as unknown as readonly QueryEvent[])
    expect(await poll(0, undefined)).toBeUndefined()
    let rows: Awaited<ReturnType<typeof poll>>
    await expect.poll(async () => (rows = await poll(0, undefined))).toBeDefined()
    if (rows?.kind !== 'relayed') throw new Error(`not relayed: ${rows?.kind}`)
    expect(await textOf(rows.data)).toBe('[[0]]')
    expect(bed.posted).toEqual(['b'])
    expect(bed.canceled).toEqual(['a'])
    expect(await poll(1, rows.next)).toMatchObject({ kind: 'relayed', next: undefined })
  })

  it('is not run again after a restart if the cluster no longer has a page that may have had rows', async () => {
    const before = bedOf({ a: ['empty', 'empty', 'rows', 'last'] })
    const { queryId } = await before.submit(READ)
    const { next } = relayedOf(await before.service.poll(queryId, 0, 1_000))
    const [events] = [...before.log.streams.values()]
    const bed = bedOf({ a: ['passed', 'passed', 'passed', 'passed'], b: ['rows', 'last'] })
    const { poll } = await resumed(bed, events as unknown as readonly QueryEvent[])
    expect(await poll(1, next)).toEqual({ kind: 'gone' })
    expect(bed.posted).toEqual([])
  })

  it('gives the answers of one page to two requests for it', async () => {
    const bed = bedOf({ a: ['rows', 'last'] })
    const { queryId } = await bed.submit(READ)
    const answers = await Promise.all([bed.service.poll(queryId, 0, 1_000), bed.service.poll(queryId, 0, 1_000)])
    const texts = await Promise.all(
      answers.map((answer) => textOf(answer.kind === 'relayed' ? answer.data : undefined)),
    )
    expect(texts).toEqual(['[[0]]', '[[0]]'])
  })

  it('has one request at its cluster at a time, however many requests for one page its client sends', async () => {
    const answers = openAnswers()
    const bed = bedOf({ a: [] }, undefined, { fetch: answers.fetch })
    const { queryId } = await bed.submit(READ)
    const polls = await Promise.all(Array.from({ length: 20 }, () => bed.service.poll(queryId, 0, 200)))
    expect(answers.most).toBe(1)
    const [answer, ...others] = polls.filter(({ kind }) => kind === 'relayed')
    expect(others).toEqual([])
    expect(await textOf(relayedOf(answer).data)).toBe('[[0],[0],[0]]')
    const again = await bed.service.poll(queryId, 0, 1_000)
    expect(await textOf(relayedOf(again).data)).toBe('[[0],[0],[0]]')
    expect(answers.most).toBe(1)
  })

  it('ends the request for a page whose reader stopped, or whose next page is requested', async () => {
    const answers = openAnswers()
    const bed = bedOf({ a: [] }, undefined, { fetch: answers.fetch })
    const { queryId } = await bed.submit(READ)
    const silent = relayedOf(await bed.service.poll(queryId, 0, 1_000))
    const again = await pollUntilRelayed(() => bed.service.poll(queryId, 0, 600))
    expect(await textOf(again.data)).toBe('[[0],[0],[0]]')
    await expect(textOf(silent.data)).rejects.toThrow('stopped before the end')
    const slow = relayedOf(await bed.service.poll(queryId, 0, 1_000))
    const next = relayedOf(await bed.service.poll(queryId, 1, 1_000, slow.next))
    expect(await textOf(next.data)).toBe('[[1],[1],[1]]')
    await expect(textOf(slow.data)).rejects.toThrow('stopped before the end')
    expect(answers.most).toBe(1)
    expect(await bed.service.poll(queryId, 0, 100)).toEqual({ kind: 'gone' })
  })

  it('passes the rows of a large last answer on, and its end once the end of the query is in the log', async () => {
    const answers = openAnswers({ last: 0, partBytes: 40_000 })
    const bed = bedOf({ a: [] }, undefined, { fetch: answers.fetch })
    const { queryId } = await bed.submit(READ)
    const first = relayedOf(await bed.service.poll(queryId, 0, 1_000))
    const typesOf = () => [...bed.log.streams.values()][0]!.map(({ type }) => type)
    expect(typesOf()).not.toContain('QueryFinished')
    const rows = first.data![Symbol.asyncIterator]()
    await rows.next()
    await rows.return!()
    await expect(first.tail).rejects.toThrow()
    expect(typesOf()).not.toContain('QueryFinished')
    const second = relayedOf(await bed.service.poll(queryId, 0, 1_000))
    expect(await textOf(second.data)).toHaveLength(120_004)
    await second.tail
    expect(typesOf()).toContain('QueryFinished')
    const third = relayedOf(await bed.service.poll(queryId, 0, 1_000))
    expect(await textOf(third.data)).toHaveLength(120_004)
    await third.tail
    expect(answers.most).toBe(1)
    expect(bed.left).toEqual(['a'])
  })

  it('ends a stage of its cluster early, and its end says that rows may be missing', async () => {
    const bed = bedOf({ a: ['rows', 'rows', 'last'] })
    const { queryId } = await bed.submit(READ)
    let relayed: Extract<StatementAnswer, { kind: 'relayed' }>['next']
    for (const token of [0, 1]) {
      const answer = await bed.service.poll(queryId, token, 1_000, relayed)
      if (answer.kind !== 'relayed') throw new Error('no answer of the cluster')
      expect(answer.cancelableStage).toBe(1)
      await textOf(answer.data)
      relayed = answer.next
    }
    expect(await bed.service.cancelStage(queryId, 1)).toBe('done')
    // The address of the newest answer.
    expect(bed.canceled).toEqual(['a /v1/statement/partialCancel/remote/1'])
    const last = await bed.service.poll(queryId, 2, 1_000, relayed)
    expect(last).toMatchObject({ kind: 'relayed', cancelableStage: undefined })
    const [stream] = [...bed.log.streams.values()]
    expect(stream!.at(-1)).toMatchObject({ type: 'QueryFinished', data: { partial: true } })
  })

  it('ends no stage early if it changes something', async () => {
    const bed = bedOf({ a: ['rows', 'last'] })
    const { queryId } = await bed.submit(WRITE)
    await bed.service.poll(queryId, 0, 1_000)
    expect(await bed.service.cancelStage(queryId, 1)).toBe('writes')
    expect(bed.canceled).toEqual([])
  })

  it('is not abandoned while its client reads a large page slowly', async () => {
    const bed = bedOf({ a: [] }, undefined, openAnswers())
    const { queryId } = await bed.submit(READ)
    const rows = relayedOf(await bed.service.poll(queryId, 0, 1_000)).data![Symbol.asyncIterator]()
    const touch = vi.spyOn(bed.registry, 'touch')
    for (let parts = 1; parts <= 3; parts++) {
      await rows.next()
      expect(touch).toHaveBeenCalledTimes(parts)
    }
    expect(touch).toHaveBeenCalledWith(queryId)
  })

  it('is canceled at its cluster before its slot is given on', async () => {
    const bed = bedOf({ a: ['rows', 'last'] })
    const execution = await bed.submit(READ)
    await bed.service.poll(execution.queryId, 0, 1_000)
    await execution.cancel()
    expect(bed.canceled).toEqual(['a'])
    await Promise.resolve()
    await expect.poll(() => bed.left).toEqual(['a'])
  })
})

describe('A delegated statement under access rules', () => {
  const rights = (tables: readonly object[]): RightsOf => {
    const rules = parseRulesFile(JSON.stringify({ tables }))
    return (user) => rules.objects({ user, groups: [] })
  }
  const all = { catalog: 'hive', privileges: ['SELECT', 'INSERT'] }
  const CHANGES = { catalog: 'hive', privileges: ['INSERT', 'UPDATE', 'DELETE'] }

  it('runs at a cluster if its user may read all columns of each table', async () => {
    const { rows } = await follow(bedOf({ a: ['last'] }, rights([all])), READ)
    expect(rows).toEqual(['[[0]]'])
  })

  it.each([
    'DELETE FROM hive.s.t WHERE a = 1',
    'UPDATE hive.s.t SET a = length(b)',
    'UPDATE hive.s.t SET a = 1 WHERE b IS NULL',
    'MERGE INTO hive.s.t USING (VALUES 1) s(x) ON a = x WHEN MATCHED THEN DELETE',
    "EXECUTE IMMEDIATE 'DELETE FROM hive.s.t WHERE a = 1'",
  ])('never runs at a cluster without the right to read the table that it changes and reads: %s', async (sql) => {
    const bed = bedOf({ a: ['last'] }, rights([CHANGES]))
    expect(failureOf((await follow(bed, sql)).last)).toMatchObject({ errorName: 'PERMISSION_DENIED' })
    expect(bed.posted).toEqual([])
  })

  it.each(['DELETE FROM hive.s.t', 'UPDATE hive.s.t SET a = 1 WHERE true'])(
    'runs at a cluster without the right to read the table that it changes but does not read: %s',
    async (sql) => {
      const bed = bedOf({ a: ['last'] }, rights([CHANGES]))
      expect(failureOf((await follow(bed, sql)).last)).toBeUndefined()
      expect(bed.posted).toEqual(['a'])
    },
  )

  it.each([
    ['a row filter applies', { ...all, filter: 'a = 1' }, READ, 'NOT_SUPPORTED'],
    ['a mask applies', { ...all, columns: [{ name: 'a', mask: '1' }] }, READ, 'NOT_SUPPORTED'],
    ['a column is hidden', { ...all, columns: [{ name: 'a', allow: false }] }, READ, 'PERMISSION_DENIED'],
    ['the privilege is missing', { ...all, privileges: ['SELECT'] }, WRITE, 'PERMISSION_DENIED'],
    ['the table is hidden', { ...all, privileges: [] }, 'SELECT * FROM (TABLE hive.s.t)', 'PERMISSION_DENIED'],
    ['a function of the cluster takes part', all, 'SELECT * FROM TABLE(hive.system.query(q => 1))', 'NOT_SUPPORTED'],
    ['the function may be found by the path', all, 'SELECT * FROM hive.s.t, TABLE(query(q => 1))', 'NOT_SUPPORTED'],
    ['it replaces a table', all, 'CREATE OR REPLACE TABLE hive.s.t AS SELECT 1 AS a', 'NOT_SUPPORTED'],
    ['it shows the text of a view', all, 'SHOW CREATE VIEW hive.s.t', 'NOT_SUPPORTED'],
    ['it makes a function', all, 'CREATE FUNCTION hive.s.f(x bigint) RETURNS bigint RETURN x', 'NOT_SUPPORTED'],
  ])('never runs at a cluster if %s', async (_when, rule, sql, errorName) => {
    const bed = bedOf({ a: ['last'] }, rights([rule]))
    const { last } = await follow(bed, sql)
    expect(failureOf(last)).toMatchObject({ errorName })
    expect(bed.posted).toEqual([])
  })

  const withoutB = { ...all, columns: [{ name: 'b', allow: false }] }
  const planned = z.object({ routed: z.object({ grade: z.string() }) })
  const gradeOf = (bed: Bed): string => {
    const [stream] = [...bed.log.streams.values()]
    return planned.parse(stream!.find(({ type }) => type === 'QueryPlanned')!.data).routed.grade
  }

  it.each([
    ['each column that it reads is known and may be read', 'SELECT a FROM hive.s.t', withoutB],
    ['names are quoted and in other case', 'SELECT "T"."A" FROM HIVE."s".T', withoutB],
    ['it executes a text', `EXECUTE IMMEDIATE 'SELECT a FROM hive.s.t'`, withoutB],
    ['it explains a query', 'EXPLAIN SELECT a FROM hive.s.t', withoutB],
  ])('is sent as analysed if %s', async (_when, sql, rule) => {
    const columns = COLUMNS.filter(([, , type]) => type !== 'objectid')
    const bed = bedOf({ a: ['last'] }, rights([rule]), { columns })
    const { last } = await follow(bed, sql)
    expect(failureOf(last)).toBeUndefined()
    expect(gradeOf(bed)).toBe('analysed')
    expect(bed.posted).toEqual(['a'])
  })

  it.each([
    ['a function is unknown here', 'SELECT st_area(a) FROM hive.s.t', COLUMNS.slice(0, 2)],
    ['the type of a column is unknown here', 'SELECT a FROM hive.s.t', COLUMNS],
    ['a column is unknown here', 'SELECT c FROM hive.s.t', COLUMNS.slice(0, 2)],
    ['the columns are not known', 'SELECT a FROM hive.s.t', undefined],
    ['the cluster gives no rows of columns', 'SELECT a FROM hive.s.t', [['t', 1]]],
  ])('is sent as named if %s', async (_when, sql, columns) => {
    for (const rightsOf of [undefined, rights([all])]) {
      const bed = bedOf({ a: ['last'] }, rightsOf, columns ? { columns } : {})
      const { last } = await follow(bed, sql)
      expect(failureOf(last)).toBeUndefined()
      expect(gradeOf(bed)).toBe('named')
    }
    const bed = bedOf({ a: ['last'] }, rights([withoutB]), columns ? { columns } : {})
    expect(failureOf((await follow(bed, sql)).last)).toMatchObject({ errorName: 'PERMISSION_DENIED' })
    expect(bed.posted).toEqual([])
  })

  it.each([
    ['SELECT b FROM hive.s.t', withoutB],
    ['SELECT * FROM hive.s.t', withoutB],
    ['TABLE hive.s.t', withoutB],
    ['SELECT a FROM hive.s.t ORDER BY b', withoutB],
    ['SELECT a FROM hive.s.t x WHERE EXISTS (SELECT 1 FROM hive.s.t WHERE b = x.b)', withoutB],
    // The rule hides a column that is not known here: the cluster may have it by now.
    ['SELECT * FROM hive.s.t', { ...all, columns: [{ name: 'c', allow: false }] }],
    ['SELECT a FROM hive.s.t', { ...all, columns: [{ name: 'c', allow: false }] }],
  ])('is never sent with a column that is hidden: %s', async (sql, rule) => {
    const bed = bedOf({ a: ['last'] }, rights([rule]), { columns: COLUMNS.slice(0, 2) })
    expect(failureOf((await follow(bed, sql)).last)).toMatchObject({ errorName: 'PERMISSION_DENIED' })
    expect(bed.posted).toEqual([])
  })
})
