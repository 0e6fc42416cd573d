import type { ClusterControl } from '../../coordinator/clusters/cluster-directory.ts'
import { createMetadataPort } from '../../coordinator/dispatch/catalog-metadata.ts'
import { ruledSession } from '../../coordinator/dispatch/property-rules.ts'
import { createDiskRoom } from '../../coordinator/dispatch/disk-room.ts'
import type { ResourceGroups } from '../../coordinator/dispatch/resource-groups.ts'
import { ConfiguredGroups } from '../../coordinator/dispatch/groups/configured-groups.ts'
import { createResourceGroups } from '../../coordinator/dispatch/groups/single-group.ts'
import { createStatementMemory, type StatementMemory } from '../../coordinator/dispatch/statement-memory.ts'
import { createAcceptanceQueue, type AcceptanceQueue } from '../../coordinator/dispatch/acceptance-queue.ts'
import { FrontEndThreads } from '../../coordinator/front-end-threads/front-end-threads.ts'
import { createThreadedFrontEnd } from '../../coordinator/front-end-threads/threaded-front-end.ts'
import type { ExecutionDeps } from '../../coordinator/query/execution/execution-deps.ts'
import { beginExecution } from '../../coordinator/query/execution/query-execution.ts'
import { createPostedTexts, type PostedTexts } from '../../coordinator/query/secrets/posted-texts.ts'
import type { PrepareStatementDeps } from '../../coordinator/query/results/prepare-statement.ts'
import { createPageMemories } from '../../coordinator/query/results/page-memory.ts'
import type { Resumption } from '../../coordinator/query/registry/query-handle.ts'
import type { QueryRegistry } from '../../coordinator/query/registry/query-registry.ts'
import { recordedSubmission } from '../../coordinator/query/secrets/query-secrets.ts'
import { createQueryTelemetry, type QueryTelemetry } from '../../coordinator/query/telemetry/query-telemetry.ts'
import { createResultPageSource } from '../../coordinator/query/results/result-page-source.ts'
import { createStatementService, type StatementService } from '../../coordinator/query/results/statement-service.ts'
import { Transactions } from '../../coordinator/query/session/transactions.ts'
import { createWriteGuard, type WriteGuard } from '../../coordinator/query/execution/write-guard.ts'
import { recordKills } from '../../coordinator/system/recorded-rights.ts'
import type { SystemJournal } from '../../coordinator/system/system-journal.ts'
import type { Tenure } from '../../coordinator/recovery/tenure.ts'
import { diskSpaceOf } from '../../execution/worker/disk-space.ts'
import { createStatementSpans, type StatementSpans } from '../../protocol/statement/statement-spans.ts'
import { deriveKey } from '../../security/cluster-secret.ts'
import { systemClock as clock } from '../../shared/clock.ts'
import { ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'
import { createQueryIds, type QueryId } from '../../shared/ids.ts'
import { createRowDigester } from '../../shared/row-digest.ts'
import { withinSpan } from '../../telemetry/current-span.ts'
import { parseTraceparent } from '../../telemetry/trace-context.ts'
import type { ChildLife } from '../child-life.ts'
import { figureNames } from '../health/figure-names.ts'
import type { QueryHistory } from './query-history.ts'
import type { CoordinatorBase } from './wire-base.ts'
import type { WiredWorkers } from './wire-workers.ts'
import { recordDenials } from '../../coordinator/system/recorded-rights.ts'
import type { RefusalLog } from '../../coordinator/system/refusal-log.ts'
import { wireDelegation } from './wire-delegation.ts'
import type { WriterSettings } from './writer-settings.ts'
import { Placement } from '../../coordinator/scheduler/placement.ts'

export interface QueriesDeps {
  readonly life: Pick<ChildLife, 'fail'>
  readonly base: CoordinatorBase
  readonly settings: WriterSettings
  /** Reads streams of queries, wherever they are stored. */
  readonly history: QueryHistory
  readonly epoch: number
  readonly tenure: Tenure
  readonly registry: QueryRegistry
  readonly workers: WiredWorkers
  /** The clusters that may run statements. */
  readonly clusters: ClusterControl
  /** Takes reports of actions that a statement may not do. */
  readonly refusals: RefusalLog
  /** Takes reports of users who ended queries of other users. */
  readonly journal: SystemJournal
}

/** The parts that accept statements and run queries. */
export interface WiredQueries {
  readonly service: StatementService
  readonly memory: StatementMemory
  readonly acceptance: AcceptanceQueue
  readonly groups: ResourceGroups
  readonly writeGuard: WriteGuard
  readonly spans: StatementSpans
  readonly telemetry: QueryTelemetry
  readonly texts: PostedTexts
  /** Resumes a query of the previous coordinator. */
  resume(queryId: QueryId, resumption: Resumption): void
  /** Ends the threads that parse long statements. */
  stop(): Promise<void>
}

export function wireQueries(deps: QueriesDeps): WiredQueries {
  const { base, settings, history, epoch, tenure, registry, workers } = deps
  const { config, dataDir } = base
  const groups = groupsOf(deps)
  const { spans, telemetry } = wireQueryTelemetry(base)
  const memory = createStatementMemory(settings.memory)
  const writeGuard = createWriteGuard()
  const transactions = new Transactions()
  const threads = new FrontEndThreads()
  const metadata = createMetadataPort(base.catalogs)
  const { groupRules, propertyRules } = base.access
  const typeIsAsked = (): boolean => groupRules !== undefined || propertyRules !== undefined
  const texts = createPostedTexts({
    threads,
    // A text is examined before it is accepted, and must not wait for a cluster.
    metadata: createMetadataPort(base.localCatalogs),
    typeIsAsked,
    ownerOf: base.access.ownerOf,
  })
  const front = { frontEnd: createThreadedFrontEnd(threads), metadata, texts, transactions }
  const delegation = wireDelegation(base, deps.clusters)
  const execution = executionOf(deps, { groups, guard: writeGuard, delegation, ...front }, (queryId, ending) =>
    service.cancel(queryId, ending, config.timeouts.deleteValidityWaitMs),
  )
  const logKills = recordKills(deps.journal)
  const ids = createQueryIds(epoch, clock.now)
  const diskRoom = createDiskRoom(config.limits.diskFloorBytes, () => diskSpaceOf(dataDir), clock)
  const { client, workers: members } = workers
  const service = createStatementService({
    clock,
    log: history,
    registry,
    memory,
    ownerOf: base.access.ownerOf,
    pages: createResultPageSource({
      log: base.log,
      client,
      workers: members,
      clock,
      lostAfterMs: settings.pageLostMs,
    }),
    start: (submission) => {
      const started = beginExecution(execution, ids(), submission)
      telemetry.follow(started)
      transactions.follow(started.aggregate)
      logKills(started.aggregate)
      return started
    },
    limits: settings.statements,
    accepting: () => tenure.open,
    epoch,
    hasDiskRoom: () => diskRoom.enough(),
    fetchAgain: delegation?.fetchAgain,
  })
  return {
    service,
    memory,
    acceptance: createAcceptanceQueue(settings.acceptance),
    groups,
    writeGuard,
    spans,
    telemetry,
    texts,
    async stop() {
      delegation?.close()
      await threads.stop()
    },
    resume(queryId, resumption) {
      const submission = { ...recordedSubmission(resumption.state.created), held: resumption.held }
      const resumed = beginExecution(execution, queryId, submission, resumption)
      registry.add(resumed)
      telemetry.resumed(resumed)
      transactions.follow(resumed.aggregate)
      logKills(resumed.aggregate)
    },
  }
}

/** The steps of a posted statement before its submission. */
export function prepareOf({ access }: CoordinatorBase, { texts, groups }: WiredQueries): PrepareStatementDeps {
  return {
    texts,
    groupOf: (statement) => groups.groupOf(statement),
    propertyRules(statement, group) {
      const rules = access.propertyRules?.()
      const digest = access.filesInForce()['session_properties'] ?? ''
      return rules && ruledSession(rules, statement, { group, digest })
    },
  }
}

function groupsOf({ base, settings, workers }: QueriesDeps): ResourceGroups {
  const { groupRules: rules } = base.access
  if (!rules) return createResourceGroups(settings.groups)
  const memory = (): number => workers.workers.active().reduce((sum, { memoryBytes = 0 }) => sum + memoryBytes, 0)
  return new ConfiguredGroups({ rules, memory, clock })
}

/** The dependencies that the executions of all queries share. */
function executionOf(
  deps: QueriesDeps,
  made: Pick<ExecutionDeps, 'groups' | 'guard' | 'delegation' | 'frontEnd' | 'metadata' | 'texts' | 'transactions'>,
  endQuery: ExecutionDeps['endQuery'],
): ExecutionDeps {
  const { life, base, settings, workers, refusals } = deps
  const { catalogs, telemetry } = base
  const { client, hub, cleaner, workers: members } = workers
  return {
    log: base.log,
    clock,
    ...made,
    catalogs,
    endQuery,
    authorize: recordDenials(base.access.ofStatements, refusals),
    objectsOf: base.access.objectsOf,
    filesInForce: base.access.filesInForce,
    onRuleFault: (queryId, message) =>
      telemetry.logger.error(
        'rules.invalid_expression',
        { queryId, reason: message },
        'An access rule is invalid: statements that read its table are refused',
      ),
    engine: base.engine,
    client,
    hub,
    workers: members,
    nodeId: base.nodeId,
    selfUrl: base.address,
    profiles: telemetry.profiles,
    digester: base.config.withoutDigests ? undefined : createRowDigester(deriveKey(base.secret, 'result-digests')),
    ...settings.execution,
    placement: new Placement({ workers: members, clock, workerWaitMs: settings.workerWaitMs }),
    cleaner,
    pageMemory: createPageMemories(settings.pageMemoryBytes).ofQuery,
    onInternalError: (queryId, error) =>
      telemetry.logger.error(
        'query.internal_error',
        { queryId, err: error },
        'A query failed because of an internal error',
      ),
    withinSpan: (traceparent, run) =>
      withinSpan(telemetry.spans().enabled ? parseTraceparent(traceparent) : undefined, run),
    onUnrecorded: (queryId) =>
      life.fail(new ExitError(exitCodes.internal, `The end of query ${queryId} could not be recorded`)),
  }
}

/** Makes the telemetry of statements: spans of their requests; metrics, a log line and a trace at each end. */
function wireQueryTelemetry(base: CoordinatorBase): Pick<WiredQueries, 'spans' | 'telemetry'> {
  const { telemetry, config } = base
  const { meters, sampler, logger } = telemetry
  const spans = createStatementSpans({
    spans: telemetry.spans,
    sampler,
    clock,
    onUnsampled: () => meters().count('spans', { result: 'unsampled' }),
  })
  return {
    spans,
    telemetry: createQueryTelemetry({
      meters,
      spans: telemetry.spans,
      polls: spans.polls,
      pollsUnrecorded: spans.pollsUnrecorded,
      logger,
      now: clock.now,
      names: figureNames(base),
      slowMs: config.timeouts.slowQueryMs,
    }),
  }
}
