import type { Clock } from '../../shared/clock.ts'
import type { HttpClient } from '../../shared/http-client.ts'
import { askCluster, createCheckClient, type ClusterAnswer } from './ask-cluster.ts'
import type { Cluster, LastCheck } from './cluster.ts'
import type { ClusterSighting } from './cluster-health.ts'

/** A check that has ended. */
export interface CheckResult {
  readonly sighting: ClusterSighting
  readonly check: LastCheck
  readonly version: string | undefined
}

/** Checks each cluster at its own times: a cluster that does not answer delays no check of another cluster. */
export interface ClusterChecks {
  /**
   * Starts the checks that are due.
   * @param isSettled whether the health of the cluster is certain: then the cluster is checked twice in each `beatMs`, else
   *   five times
   */
  tick(clusters: readonly Cluster[], isSettled: (cluster: Cluster) => boolean): void
  stop(): void
}

export interface ClusterChecksDeps {
  readonly clock: Clock
  readonly beatMs: number
  readonly onResult: (cluster: Cluster, result: CheckResult) => void
}

interface Checked {
  readonly http: HttpClient
  /** The number of checks that have no answer yet. */
  open: number
  startedAt: number
}

/** The most checks of one cluster at the same time, for a cluster that accepts connections and does not answer. */
const MOST_OPEN = 3
/** How often a cluster is checked in each `beatMs`: while its health is certain, and while it is not. */
const CHECKS = { settled: 2, hurry: 5 } as const

export function createClusterChecks({ clock, beatMs, onResult }: ClusterChecksDeps): ClusterChecks {
  /** By the cluster object: a changed file makes a new object, which gets a new client. */
  const checked = new Map<Cluster, Checked>()

  function check(cluster: Cluster, state: Checked): void {
    const at = new Date(clock.now()).toISOString()
    const start = clock.monotonicMs()
    state.startedAt = start
    state.open++
    const result = (sighting: ClusterSighting, version: string | undefined, error?: string): void => {
      state.open--
      if (checked.get(cluster) !== state) return
      const milliseconds = Math.round(clock.monotonicMs() - start)
      const check = { at, milliseconds, result: sighting.kind, ...(error !== undefined && { error }) }
      onResult(cluster, { sighting, version, check })
    }
    askCluster(cluster, state.http, beatMs).then(
      (answer: ClusterAnswer) => result({ kind: answer.starting ? 'starting' : 'ready' }, answer.version),
      (error: Error) => result({ kind: 'failed', error }, undefined, error.message),
    )
  }

  return {
    tick(clusters, isSettled) {
      const there = new Set(clusters)
      for (const [cluster, { http }] of checked)
        if (!there.has(cluster)) {
          checked.delete(cluster)
          http.close()
        }
      const now = clock.monotonicMs()
      for (const cluster of clusters) {
        const state = checked.get(cluster) ?? { http: createCheckClient(cluster), open: 0, startedAt: -Infinity }
        checked.set(cluster, state)
        // If an answer is late, the next check starts without it.
        const isLate = state.open > 0 && now - state.startedAt >= beatMs / CHECKS.hurry
        const everyMs = beatMs / (isSettled(cluster) && !isLate ? CHECKS.settled : CHECKS.hurry)
        if (state.open < MOST_OPEN && now - state.startedAt >= everyMs) check(cluster, state)
      }
    },
    stop() {
      for (const { http } of checked.values()) http.close()
      checked.clear()
    },
  }
}
