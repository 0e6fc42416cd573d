import { setImmediate as nextLoopPass } from 'node:timers/promises'
import type { Cluster } from '../../clusters/cluster.ts'
import { ClusterLost, type RemoteTail, type RemoteUri } from '../../clusters/relay/relay-port.ts'
import type { RemoteFigures } from '../../clusters/relay/remote-figures.ts'
import { DELEGATED_PLAN, REMOTE_STAGE } from '../../../planner/query-plan.ts'
import { Fenced } from '../../../events/event-log.ts'
import { isTaskTerminal } from '../../../execution/api/task.ts'
import { parseNodeId, taskId as makeTaskId, type NodeId, type TaskId } from '../../../shared/ids.ts'
import { unreachable } from '../../../shared/unreachable.ts'
import type { QueryCommand } from '../stream/decider.ts'
import type { QueryEventOf } from '../stream/events.ts'
import { explainedAnswer } from '../results/explained-answer.ts'
import { isTerminal } from '../stream/state.ts'
import type { RunContext } from './run-context.ts'
import { Suspended } from './suspended.ts'
import { lostClusterFailure, remoteFailure, withUnknownOutcome } from './remote-failure.ts'
import { RemoteRun, type RemoteOutcome } from './remote-run.ts'
import { FiguresAtEnd } from './figures-at-end.ts'
import { isRemote, type RemoteRouted } from '../stream/remote-routed.ts'
import type { RemoteDeps } from './delegation.ts'
import type { AnalysedForCluster } from './analyse-for-cluster.ts'
import { besidesPost, postAtCluster, type PostedAtCluster, type StatementToPost } from './post-at-cluster.ts'
import { remoteTaskStats, relayedRows, runningTaskStats, type RelayedWork } from './remote-stats.ts'

/** A statement that runs at a cluster. */
export interface DelegatedStatement extends StatementToPost {
  readonly queryType: string
  /** Gives the findings of the analysis, undefined if the statement is not analysed here, and the time until then. */
  readonly analyse: () => Promise<{
    readonly analysed: AnalysedForCluster | undefined
    readonly analysisNanos: number
  }>
}

/** Why a task at a cluster runs again. */
const CLUSTER_LOST = 'cluster_lost'
/**
 * After this run time, milliseconds, the coordinator records an address for the statement. With this address, a
 * successor can keep the statement alive at the cluster. The record does not slow down shorter statements.
 */
const NOTED_AFTER_MS = 250

/**
 * Delegates a statement to a cluster. Trino starts it at the first GET. The plan and the task of a write are valid in
 * the log before that. A read begins while they are appended, and its client gets nothing before they are valid. If the
 * cluster is lost before any rows were sent, a read runs again at another cluster. A write never runs again.
 * @throws EngineError
 */
export async function runRemoteStatement(
  deps: RemoteDeps,
  run: RunContext,
  statement: DelegatedStatement,
): Promise<void> {
  const plan = async (): Promise<QueryCommand> => {
    const { queryType } = statement
    const { analysed, analysisNanos } = await statement.analyse()
    const routed: RemoteRouted = analysed ? { ...statement.routed, grade: 'analysed' } : statement.routed
    run.keepRoute(routed)
    return run.planned({
      queryType,
      plan: DELEGATED_PLAN,
      ...(analysed ?? { columns: [], tables: [] }),
      analysisNanos,
      planningNanos: 0,
      routed,
    })
  }
  await runAttempts(deps, run, statement, { plan, number: 0, lost: undefined })
}

/** Continues a delegated statement that another coordinator began. */
export async function resumeRemoteStatement(
  deps: RemoteDeps,
  run: RunContext,
  planned: QueryEventOf<'QueryPlanned'>['data'],
  statement: Pick<DelegatedStatement, 'sql' | 'session'> | undefined,
): Promise<void> {
  const { routed, queryType } = planned
  if (!isRemote(routed)) throw new Error('a delegated plan names its route')
  const query = run.aggregate.intended
  const task = query.kind === 'NONE' ? undefined : [...query.tasks.values()].findLast(({ remote }) => remote)
  const analyse = () => Promise.reject(new Error('the statement is planned'))
  const delegated = statement && { ...statement, routed, queryType, analyse }
  const number = query.kind === 'NONE' ? 0 : query.recoveries * 1000
  // The plan and the first task are in one append.
  if (!task?.remote) throw new Error('a delegated plan has a task')
  if (isTaskTerminal(task.state)) {
    // Only the end of a read that sent no rows is recorded before the end of its query.
    const error = new ClusterLost(task.remote.cluster, 'unreachable', task.failure?.message ?? 'it was lost')
    if (!routed.readOnly) throw lostClusterFailure(error, 'may_have_run')
    if (task.state !== 'FAILED' || !delegated) throw lostClusterFailure(error, 'no_attempts_left')
    const lost = { taskId: task.taskId, attempt: task.attempt, error }
    return runAttempts(deps, run, delegated, { plan: undefined, number, lost })
  }
  await deps.clusters.ready
  const uri = deps.seal.openUri(task.taskId, task.remote.uri)
  const slot = uri && deps.clusters.adopt(task.remote.cluster)
  if (!uri || !slot) {
    const error = new ClusterLost(task.remote.cluster, 'refused', 'it runs the statement, and is no longer configured')
    throw lostClusterFailure(error, routed.readOnly ? 'no_attempts_left' : 'may_have_run')
  }
  const { aliveUri: sealedAliveUri } = task.remote
  const aliveUri = sealedAliveUri === undefined ? undefined : deps.seal.openUri(task.taskId, sealedAliveUri)
  const begun = {
    slot,
    taskId: task.taskId,
    remoteId: task.remote.queryId,
    uri,
    cancel: cancelOnce(deps, { slot, uri }),
    aliveUri,
    attempt: task.attempt,
    mayHaveSent: true,
  }
  const outcome = await followAttempt(deps, run, begun, startAttempt(deps, run, begun, routed))
  const lost = await settle(deps, run, begun, routed, outcome)
  if (!lost) return
  if (!delegated) throw lostClusterFailure(lost.error, 'no_attempts_left')
  await runAttempts(deps, run, delegated, { plan: undefined, number, lost })
}

interface BegunAttempt extends PostedAtCluster {
  readonly taskId: TaskId
  /** Ends the query at its cluster, and then frees its slot. @param uri any address of the query; default: the first */
  readonly cancel: (uri?: RemoteUri) => void
  /** An address by which the query is kept alive; undefined while only the first one is known. */
  readonly aliveUri?: RemoteUri | undefined
  readonly attempt: number
  /** Whether an earlier coordinator may have sent rows of it. */
  readonly mayHaveSent: boolean
}

interface LostAttempt {
  readonly taskId: TaskId
  readonly attempt: number
  readonly error: ClusterLost
}

interface Beginning {
  /** Makes the plan, which is recorded together with the first task; undefined when it is recorded. */
  readonly plan: (() => Promise<QueryCommand>) | undefined
  /** The number of the first task. */
  readonly number: number
  readonly lost: LostAttempt | undefined
}

async function runAttempts(
  deps: RemoteDeps,
  run: RunContext,
  statement: DelegatedStatement,
  from: Beginning,
): Promise<void> {
  let { plan, lost } = from
  for (let number = from.number; ; number++) {
    const attempt = lost ? lost.attempt + 1 : 0
    if (lost && attempt >= run.limits.attempts) throw lostClusterFailure(lost.error, 'no_attempts_left')
    const posting = postAtCluster(deps, run, statement, lost?.error.cluster)
    const { posted, planned } = await besidesPost(posting, plan, run.signal)
    const taskId = makeTaskId(run.queryId, REMOTE_STAGE, number)
    const cancel = cancelOnce(deps, posted)
    const begun: BegunAttempt = { ...posted, cancel, taskId, attempt, mayHaveSent: false }
    const commands = beginning(deps, begun, planned, lost)
    const started = await recordStart(deps, run, begun, statement.routed, commands)
    plan = undefined
    const outcome = await followAttempt(deps, run, begun, started)
    lost = await settle(deps, run, begun, statement.routed, outcome)
    if (!lost) return
  }
}

function beginning(
  { seal }: RemoteDeps,
  { slot, taskId, remoteId, uri, attempt }: BegunAttempt,
  planned: QueryCommand | undefined,
  lost: LostAttempt | undefined,
): readonly QueryCommand[] {
  const { cluster } = slot
  const retry: QueryCommand[] = lost
    ? [{ type: 'RetryTask', data: { taskId: lost.taskId, newTaskId: taskId, reason: CLUSTER_LOST } }]
    : []
  return [
    ...(planned ? [planned] : []),
    ...retry,
    {
      type: 'CreateTask',
      data: {
        taskId,
        stage: REMOTE_STAGE,
        nodeId: nodeOf(cluster),
        nodeUrl: cluster.url.origin,
        splits: 0,
        attempt,
        ...(lost ? { retryOf: lost.taskId, retryReason: CLUSTER_LOST } : {}),
        remote: { cluster: cluster.name, queryId: remoteId, uri: seal.sealUri(taskId, uri) },
      },
    },
  ]
}

/**
 * Records the beginning of an attempt, and then starts it. The first attempt of a read starts while the log appends.
 * @throws EventLogError
 */
async function recordStart(
  deps: RemoteDeps,
  run: RunContext,
  begun: BegunAttempt,
  routed: RemoteRouted,
  commands: readonly QueryCommand[],
): Promise<StartedAttempt> {
  const { slot, attempt } = begun
  if (run.signal.aborted) {
    // Without a GET a Trino drops the statement.
    slot.leave()
    throw run.signal.reason as Error
  }
  const early = routed.readOnly && attempt === 0 ? startAttempt(deps, run, begun, routed) : undefined
  early?.remote.begin()
  // A coordinator that is replaced does not cancel: if the append is valid, its successor continues the query.
  const cancel = (reason: unknown): void =>
    early && !(reason instanceof Fenced || reason instanceof Suspended) ? begun.cancel() : slot.leave()
  const onAbort = (): void => cancel(run.signal.reason)
  // The append may wait for the log for a long time. The read of a query that was given up must not run meanwhile.
  run.signal.addEventListener('abort', onAbort)
  try {
    // The request to the cluster leaves before the events are made, which takes about a millisecond.
    if (early) await nextLoopPass()
    await run.record(commands)
    return early ?? startAttempt(deps, run, begun, routed)
  } catch (error) {
    early?.stop()
    cancel(error)
    throw error
  } finally {
    run.signal.removeEventListener('abort', onAbort)
  }
}

interface StartedAttempt {
  readonly remote: RemoteRun
  readonly figures: FiguresAtEnd
  /** Stops all that belongs to the attempt in this process. */
  stop(): void
}

interface FollowedAttempt extends Pick<StartedAttempt, 'remote' | 'figures'> {
  readonly outcome: RemoteOutcome
}

interface FinishedAttempt {
  readonly remote: RemoteRun
  readonly tail: RemoteTail
  readonly figures: RemoteFigures | undefined
}

function startAttempt(
  deps: RemoteDeps,
  run: RunContext,
  begun: BegunAttempt,
  { readOnly }: RemoteRouted,
): StartedAttempt {
  const { slot, taskId, remoteId, uri, aliveUri, attempt, mayHaveSent } = begun
  const { cluster } = slot
  const figures = new FiguresAtEnd(() => deps.relay.figures(cluster, remoteId))
  let noting: NodeJS.Timeout | undefined
  const noteExecuting = (executing: RemoteUri): void => {
    const noted = { taskId, uri: deps.seal.sealUri(taskId, executing) }
    void run.record([{ type: 'ReportProgress', data: { tasks: [], remote: noted } }]).catch(() => {})
  }
  const remote = new RemoteRun(
    {
      relay: {
        ...deps.relay,
        fetch: async (...asked) => explainedAnswer(await deps.relay.fetch(...asked), run.routed),
      },
      clock: deps.clock,
      pages: run.pages,
      hold: run.hold,
      onStats: (work) => run.onStats(taskId, runningTaskStats(work)),
      onExecuting: (executing) => {
        noting = setTimeout(() => noteExecuting(executing), NOTED_AFTER_MS)
      },
      onFinished: (work) => needsFigures(readOnly, work) && figures.begin(),
    },
    { cluster, attempt, firstUri: uri, aliveUri, mayHaveSent, readOnly },
    run.signal,
  )
  const stop = (): void => {
    clearTimeout(noting)
    remote.stop()
  }
  return { remote, figures, stop }
}

/**
 * Whether the end of a statement waits for the figures of its cluster. The last answer has all of them except the number
 * of rows, and the relay counts the rows of small answers. The end of a change is recorded at once: until then a limit
 * could still fail a statement that was carried out.
 */
function needsFigures(readOnly: boolean, { rows }: RelayedWork): boolean {
  return readOnly && rows === undefined
}

/** Follows an attempt until it has ended, and frees its slot once the statement no longer runs at the cluster. */
async function followAttempt(
  deps: RemoteDeps,
  run: RunContext,
  { slot, cancel }: BegunAttempt,
  { remote, figures, stop }: StartedAttempt,
): Promise<FollowedAttempt> {
  run.onRemote(remote)
  try {
    const outcome = await untilAborted(run.signal, remote.outcome)
    // The slot of another attempt is kept until the cluster has ended its query: see `settle`.
    if (outcome.kind === 'done' || outcome.kind === 'failed') slot.leave()
    return { remote, outcome, figures }
  } catch (error) {
    remote.recorded(false)
    if (error instanceof Suspended) slot.leave()
    else onceEnded(run, () => cancel(remote.uri))
    throw error
  } finally {
    stop()
  }
}

/**
 * Calls back once the end of the query is in the log. A coordinator that lost the log never gets there: another one
 * continues with the query, so this one must not cancel it.
 */
function onceEnded({ aggregate }: RunContext, then: () => void): void {
  if (isTerminal(aggregate.state.kind)) return then()
  let isOver = false
  aggregate.onValid(() => {
    if (isOver || !isTerminal(aggregate.state.kind)) return
    isOver = true
    then()
  })
}

/**
 * Makes the function that ends a query at its cluster. It frees the slot only after that: otherwise more queries would
 * run there than the limit of the cluster allows. Several causes may end a query at about the same time: only the first
 * call sends a request.
 */
function cancelOnce(
  { relay }: RemoteDeps,
  { slot, uri: firstUri }: Pick<BegunAttempt, 'slot' | 'uri'>,
): BegunAttempt['cancel'] {
  let isCanceled = false
  return (uri = firstUri) => {
    if (isCanceled) return
    isCanceled = true
    void relay
      .cancel(slot.cluster, uri)
      .catch(() => {})
      .finally(() => slot.leave())
  }
}

function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error)
    if (signal.aborted) return abort()
    signal.addEventListener('abort', abort, { once: true })
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

/**
 * Records the end of an attempt.
 * @returns the attempt when the statement must run again
 * @throws EngineError when the query fails
 */
async function settle(
  deps: RemoteDeps,
  run: RunContext,
  { slot, taskId, attempt, cancel }: BegunAttempt,
  { readOnly }: RemoteRouted,
  { outcome, remote, figures }: FollowedAttempt,
): Promise<LostAttempt | undefined> {
  switch (outcome.kind) {
    case 'done':
      try {
        const found = needsFigures(readOnly, remote.work) ? await figures.read() : undefined
        await finish(deps, run, { slot, taskId }, { remote, tail: outcome.tail, figures: found })
      } finally {
        // A limit or a cancel may have ended the query meanwhile: its failure is then the answer.
        remote.recorded(run.aggregate.state.kind === 'FINISHED')
      }
      return undefined
    case 'stopped':
      onceEnded(run, () => cancel(remote.uri))
      throw readOnly ? outcome.error : withUnknownOutcome(outcome.error)
    case 'failed':
      // The task ends together with its query, in one append.
      throw remoteFailure(slot.cluster.name, outcome.error)
    case 'lost': {
      const { error, rowsSent } = outcome
      if (rowsSent || !readOnly) {
        onceEnded(run, () => cancel(remote.uri))
        throw lostClusterFailure(error, readOnly ? 'rows_sent' : 'may_have_run')
      }
      const failure = lostClusterFailure(error, 'no_attempts_left').toFailure()
      await run.record([{ type: 'FailTask', data: { taskId, failure } }]).catch((refused: unknown) => {
        slot.leave()
        throw refused
      })
      cancel(remote.uri)
      return { taskId, attempt, error }
    }
    default:
      return unreachable(outcome)
  }
}

async function finish(
  { clock }: Pick<RemoteDeps, 'clock'>,
  run: RunContext,
  { slot, taskId }: Pick<BegunAttempt, 'slot' | 'taskId'>,
  { remote, tail, figures }: FinishedAttempt,
): Promise<void> {
  const { cluster } = slot
  const stats = remoteTaskStats({ ...remote.work, endedAt: clock.now() }, figures)
  const { updateType, updateCount } = tail
  await run.record([
    {
      type: 'FinishTask',
      data: { taskId, stage: REMOTE_STAGE, nodeId: nodeOf(cluster), nodeUrl: cluster.url.origin, stats },
    },
    run.finish({
      rows: relayedRows(remote.work, figures),
      bytes: remote.work.bytes,
      responseHeaders: [...remote.headers],
      ...(updateType === undefined ? {} : { updateType }),
      ...(updateCount === undefined ? {} : { updateCount }),
    }),
  ])
}

function nodeOf({ name }: Cluster): NodeId {
  return parseNodeId(`cluster-${name}`)
}
