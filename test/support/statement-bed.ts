import { createRowDigester } from '../../src/shared/row-digest.ts'
import { createQueryRegistry } from '../../src/coordinator/query/registry/query-registry.ts'
import { allowAll } from '../../src/security/authorization.ts'
import type { ExecutionDeps } from '../../src/coordinator/query/execution/execution-deps.ts'
import { beginExecution } from '../../src/coordinator/query/execution/query-execution.ts'
import { queryEventVersions, type QueryEvent } from '../../src/coordinator/query/stream/events.ts'
import { foldQuery } from '../../src/coordinator/query/stream/evolve.ts'
import { personOf } from '../../src/coordinator/query/session/session-identity.ts'
import { limitOwners } from '../../src/shared/limit-owner.ts'
import type { QueryExecution } from '../../src/coordinator/query/registry/query-handle.ts'
import { recordedSubmission } from '../../src/coordinator/query/secrets/query-secrets.ts'
import type { LiveQuery } from '../../src/coordinator/query/stream/state.ts'
import { createStatementService } from '../../src/coordinator/query/results/statement-service.ts'
import { createPageMemories } from '../../src/coordinator/query/results/page-memory.ts'
import { Transactions } from '../../src/coordinator/query/session/transactions.ts'
import { createWriteGuard } from '../../src/coordinator/query/execution/write-guard.ts'
import { createStatementMemory, type StatementMemoryLimits } from '../../src/coordinator/dispatch/statement-memory.ts'
import { createResourceGroups } from '../../src/coordinator/dispatch/groups/single-group.ts'
import type { GroupLimits } from '../../src/coordinator/dispatch/resource-groups.ts'
import {
  SequenceConflict,
  type Appended,
  type Event,
  type EventLog,
  type Recorded,
} from '../../src/events/event-log.ts'
import { createQueryIds, parseNodeId } from '../../src/shared/ids.ts'
import type { ThreadedFrontEnd } from '../../src/coordinator/front-end-threads/threaded-front-end.ts'
import type { PlannedStatement } from '../../src/planner/planned-statement.ts'
import { QUERY_ID, sampleData } from './query-events.ts'

/** A log in memory that accepts appends at once and in order, as a real log. `settle` decides when they become valid. */
export class MemoryLog {
  readonly streams = new Map<string, Event[]>()
  /** Delays the validity of each append; by default there is no delay. */
  settle: () => Promise<void> = () => Promise.resolve()
  /** The last append of each stream, because appends become valid in order. */
  readonly #settled = new Map<string, Promise<void>>()
  /** The reason to refuse an append; undefined to accept it. */
  refuse: (stream: string, events: readonly Event[]) => Error | undefined = () => undefined
  /** The events of each append, in order. */
  readonly appends: { readonly stream: string; readonly types: readonly string[] }[] = []

  async append(stream: string, expected: number, events: readonly Event[]): Promise<Appended> {
    const known = this.streams.get(stream) ?? []
    if (known.length !== expected) throw new SequenceConflict(stream, expected, known.length)
    const refusal = this.refuse(stream, events)
    if (refusal) throw refusal
    this.streams.set(stream, [...known, ...events])
    this.appends.push({ stream, types: events.map(({ type }) => type) })
    const before = this.#settled.get(stream)
    const settled = this.settle().then(() => before)
    this.#settled.set(stream, settled)
    await settled
    const position = { partition: 0, offset: BigInt(expected + events.length) }
    return { ...position, events: events.map((event) => ({ ...event, position }) as unknown as Recorded) }
  }

  typesOf(stream: string): readonly string[] {
    return (this.streams.get(stream) ?? []).map(({ type }) => type)
  }

  asEventLog(): EventLog {
    const log: Partial<EventLog> = {
      append: (stream, expected, events) =>
        this.append(stream, expected === 'end' ? this.typesOf(stream).length : expected, events),
      keepPages: async (_stream, pages) => ({ offsets: pages.map(() => undefined), beside: [] }),
      tip: () => Promise.resolve({ logId: '', at: [] }),
      async *readStream() {},
    }
    return log as EventLog
  }
}

/** A SELECT of literals, whose row needs no engine. */
export const literals: PlannedStatement = {
  kind: 'query',
  queryType: 'SELECT',
  columns: [],
  lineage: { columns: [], rows: [] },
  warnings: [],
  query: {
    sql: 'SELECT 1 AS c0',
    scans: [],
    wire: [],
    streams: false,
    ordered: false,
    risky: false,
    simple: true,
    outline: { name: 'Values', details: {}, layout: [], children: [] },
    reads: [],
    views: [],
    literalRow: '[1]',
  },
}

const realClock = { now: () => Date.now(), monotonicMs: () => performance.now() }

export interface BedOptions {
  readonly log: MemoryLog
  readonly limits?: GroupLimits
  readonly openQueries?: number
  readonly memory?: StatementMemoryLimits
  readonly endedBytes?: number
  readonly analyze?: (sql: string) => Promise<PlannedStatement>
  readonly deps?: Partial<ExecutionDeps>
}

/** The statement service over real executions, registry and resource groups. All other collaborators are fakes. */
export function createStatementBed(options: BedOptions) {
  const { log } = options
  const groups = createResourceGroups(options.limits ?? { running: 100, queued: 100 })
  const ids = createQueryIds(1, () => Date.now())
  const registry = createQueryRegistry(
    realClock,
    {
      firstFollowMs: 1e9,
      clientAbsentMs: 1e9,
      inMemoryMs: 1e9,
      endedInMemory: 1e9,
      endedBytes: options.endedBytes ?? 1e9,
    },
    () => true,
  )
  const memory = createStatementMemory(options.memory ?? { totalBytes: 1e9, userBytes: 1e9, addressBytes: 1e9 })
  const pageMemories = createPageMemories(1 << 20)
  const executions: QueryExecution[] = []
  const unrecorded: string[] = []
  const internalErrors: unknown[] = []
  const frontEnd: ThreadedFrontEnd = {
    survey: () => Promise.reject(new Error('Without clusters no statement is surveyed')),
    plan: ({ sql }) => (options.analyze ? options.analyze(sql) : Promise.resolve(literals)),
  }
  const deps: Partial<ExecutionDeps> = {
    log: log.asEventLog(),
    clock: realClock,
    frontEnd,
    texts: { findType: () => undefined },
    groups,
    guard: createWriteGuard(),
    transactions: new Transactions(),
    nodeId: parseNodeId('coordinator'),
    selfUrl: '',
    digester: createRowDigester(Buffer.alloc(32, 7)),
    maxAttempts: 4,
    limits: {
      pageBytes: 1 << 20,
      inlineBytes: 1 << 24,
      server: { runMs: 1e6, executionMs: 1e6, planningMs: 1e6 },
      answersKeptMs: 1e6,
      planBytes: 1 << 20,
      headerBytes: 1 << 16,
    },
    authorize: allowAll,
    objectsOf: () => undefined,
    filesInForce: () => ({}),
    onRuleFault: () => {},
    cleaner: { release: () => {}, stop: () => {} } as unknown as ExecutionDeps['cleaner'],
    firstAppendHoldMs: 0,
    pageMemory: pageMemories.ofQuery,
    onInternalError: (_queryId, error) => void internalErrors.push(error),
    onUnrecorded: (queryId) => void unrecorded.push(queryId),
    ...options.deps,
  }
  const service = createStatementService({
    clock: realClock,
    log: log.asEventLog(),
    registry,
    memory,
    ownerOf: limitOwners(false),
    pages: { read: () => Promise.resolve('lost') },
    start: (submission) => {
      const execution = beginExecution(deps as ExecutionDeps, ids(), submission)
      executions.push(execution)
      return execution
    },
    limits: {
      openQueries: options.openQueries ?? 1000,
      postLogWaitMs: 60_000,
      postPlanWaitMs: 60_000,
      answersKeptMs: 1e9,
    },
    accepting: () => true,
    epoch: 1,
    hasDiskRoom: () => true,
  })
  const submit = (sql: string, user = 'alice', address = '127.0.0.1'): Promise<QueryExecution> => {
    const session = { ...sampleData.QueryCreated.session, user, remoteUserAddress: address }
    return service.submit(recordedSubmission({ ...sampleData.QueryCreated, sql, session }))
  }
  /** Continues a query whose events in the log are these. */
  const resume = (events: readonly QueryEvent[]): QueryExecution => {
    const state = foldQuery(QUERY_ID, events) as LiveQuery
    log.streams.set(
      QUERY_ID,
      events.map(({ type, time, data }) => ({ type, v: queryEventVersions[type], time, data })),
    )
    const held = memory.holdRecovered(limitOwners(false)(personOf(state.created)), 0, false)!
    const submission = { ...recordedSubmission(state.created), held }
    return beginExecution(deps as ExecutionDeps, QUERY_ID, submission, { state, sequence: events.length, held })
  }
  return { memory, pageMemories, service, submit, resume, registry, groups, executions, unrecorded, internalErrors }
}
