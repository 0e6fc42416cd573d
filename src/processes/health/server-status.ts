import { setTimeout as sleep } from 'node:timers/promises'
import type { Membership } from '../../coordinator/nodes/membership.ts'
import type { ProjectionCondition, ProjectionLag } from '../../events/projection.ts'
import type { ProjectionRunner } from '../../events/projection-runner.ts'
import type { InfoRoutesDeps } from '../../protocol/info/info-routes.ts'
import type { ServerStatus } from '../../protocol/info/schemas/server.ts'
import type { RestartCount } from '../../supervisor/messages.ts'
import type { DependencyHealth } from './dependency-health.ts'

export interface StatusDeps {
  readonly health: Pick<DependencyHealth, 'log' | 'database'>
  /** The condition is known only where the projection runs. */
  readonly projection: Pick<ProjectionRunner, 'lag'> & Partial<Pick<ProjectionRunner, 'condition'>>
  readonly restarts: () => readonly RestartCount[]
  readonly workers: Pick<Membership, 'nodes'>
  /** Present only for the writer. */
  readonly writing?: { deadLetters(): number; openQueries(): number } | undefined
  /** How long log and read models get to report their positions, milliseconds. @default 1500 */
  readonly lagWaitMs?: number
}

/** The writer has its own answer after a second. */
const LAG_WAIT_MS = 1500

/** The content of `/v1/status`, except the writer. */
export async function statusOf(deps: StatusDeps): ReturnType<InfoRoutesDeps['status']> {
  const { health, projection, restarts, workers, writing, lagWaitMs = LAG_WAIT_MS } = deps
  return {
    log: health.log,
    database: health.database,
    ...(await lagOf(projection, lagWaitMs)),
    ...conditionOf(projection.condition),
    deadLetters: writing?.deadLetters() ?? 0,
    restarts: coordinatorRestarts(restarts()),
    workers: countStates(workers.nodes()),
    openQueries: writing?.openQueries() ?? 0,
  }
}

/** How often this process was restarted since its supervisor began. */
export function coordinatorRestarts(restarts: readonly RestartCount[]): number {
  return restarts.filter((one) => one.process === 'coordinator').reduce((sum, one) => sum + one.count, 0)
}

/**
 * @returns an empty object if log or read models do not answer soon: the status of a failed dependency does not wait
 * for them
 */
async function lagOf(
  projection: Pick<ProjectionRunner, 'lag'>,
  waitMs: number,
): Promise<{ readonly lag?: ProjectionLag }> {
  const late = new AbortController()
  const asked = projection.lag().then(
    (lag) => ({ lag }),
    () => ({}),
  )
  const answer = await Promise.race([asked, sleep(waitMs, {}, { signal: late.signal }).catch(() => ({}))])
  late.abort()
  return answer
}

function conditionOf(condition: ProjectionCondition | undefined): Pick<ServerStatus, 'projection'> {
  if (!condition) return {}
  const { kind: state, ...more } = condition
  return { projection: { state, ...more } }
}

function countStates(nodes: readonly { readonly state: string }[]): ServerStatus['workers'] {
  const count = (state: string): number => nodes.filter((node) => node.state === state).length
  return { active: count('active'), suspect: count('suspect'), failed: count('failed') }
}
