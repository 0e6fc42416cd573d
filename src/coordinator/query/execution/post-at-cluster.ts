import { setImmediate as nextLoopPass, setTimeout as sleep } from 'node:timers/promises'
import { REMOTE_STAGE } from '../../../planner/query-plan.ts'
import { EngineError } from '../../../shared/engine-error.ts'
import { decidesItself, type ClusterSlot } from '../../clusters/cluster.ts'
import { ClusterLost, type RemoteUri } from '../../clusters/relay/relay-port.ts'
import type { QueryCommand } from '../stream/decider.ts'
import type { QuerySession } from '../stream/events.ts'
import type { RemoteRouted } from '../stream/remote-routed.ts'
import { targetOf, type RemoteDeps } from './delegation.ts'
import { remoteStatement } from './remote-session.ts'
import type { RunContext } from './run-context.ts'

/**
 * The query fails after this number of refused POSTs. Repeating a POST is safe, because Trino does not start a statement at
 * it.
 */
const MOST_POSTS = 3
/**
 * How long QueryCreated waits for the answer to the POST at the cluster, milliseconds: its events and those of the plan
 * are then one append.
 */
const POSTED_MS = 100

/** The parts of a statement that its POST needs. */
export interface StatementToPost {
  readonly routed: RemoteRouted
  readonly sql: string
  readonly session: QuerySession
}

/** A statement that a cluster has taken, and not started yet. */
export interface PostedAtCluster {
  readonly slot: ClusterSlot
  readonly remoteId: string
  /** The first address at the cluster. */
  readonly uri: RemoteUri
}

/**
 * Posts the statement to a cluster of its route.
 * @throws EngineError when no cluster takes it
 */
export async function postAtCluster(
  { clusters, relay }: RemoteDeps,
  run: RunContext,
  { routed, sql, session }: StatementToPost,
  avoid: string | undefined,
): Promise<PostedAtCluster> {
  const target = targetOf(routed)
  const refusals: string[] = []
  /** The clusters that would refuse the statement again. */
  const refused = new Set<string>()
  for (let failed = avoid; refusals.length < MOST_POSTS;) {
    const slot = await clusters.slot(target, {
      user: run.user,
      signal: run.signal,
      ...(failed === undefined ? {} : { avoid: failed }),
    })
    if (refused.has(slot.cluster.name)) {
      slot.leave()
      break
    }
    try {
      const { cluster } = slot
      if (!routed.checked && !decidesItself(cluster))
        throw new EngineError(
          'NOT_SUPPORTED',
          `Cluster ${cluster.name} does not check the rights of users, and this server could not: submit the statement again`,
        )
      const statement = remoteStatement(sql, session, {
        user: cluster.runAs === 'caller' ? session.user : undefined,
        traceparent: run.spanOf(REMOTE_STAGE),
      })
      run.holdOn(POSTED_MS)
      return { slot, ...(await relay.post(cluster, statement, run.signal)) }
    } catch (error) {
      slot.leave()
      run.signal.throwIfAborted()
      if (!(error instanceof ClusterLost)) throw error
      refusals.push(error.message)
      failed = error.cluster
      if (error.retry === 'never') refused.add(error.cluster)
      if (error.retryAfterMs) await sleep(error.retryAfterMs)
    }
  }
  throw new EngineError('REMOTE_HOST_GONE', `No cluster took the statement. ${refusals.join('; ')}`)
}

/**
 * Makes the plan while the cluster answers the POST. If the statement ends meanwhile, its slot is free at once: without a
 * GET the statement does not start at the cluster.
 * @param plan undefined: there is nothing to plan
 * @param signal aborts when the statement ends
 * @throws the errors of both; then the slot is free
 */
export async function besidesPost(
  posting: Promise<PostedAtCluster>,
  plan: (() => Promise<QueryCommand>) | undefined,
  signal: AbortSignal,
): Promise<{ readonly posted: PostedAtCluster; readonly planned: QueryCommand | undefined }> {
  const leave = (): void =>
    void posting.then(
      ({ slot }) => slot.leave(),
      () => {},
    )
  posting.catch(() => {})
  signal.addEventListener('abort', leave)
  try {
    // The request leaves before the work on the plan begins.
    if (plan) await nextLoopPass()
    const planned = await plan?.()
    return { posted: await posting, planned }
  } catch (error) {
    leave()
    throw error
  } finally {
    signal.removeEventListener('abort', leave)
  }
}
