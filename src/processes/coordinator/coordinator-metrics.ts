import type { ClusterControl } from '../../coordinator/clusters/cluster-directory.ts'
import { observeClusters } from '../../coordinator/clusters/cluster-telemetry.ts'
import type { ResourceGroups } from '../../coordinator/dispatch/resource-groups.ts'
import { observeGroups } from '../../coordinator/dispatch/group-meter.ts'
import type { Membership } from '../../coordinator/nodes/membership.ts'
import { observeWorkers } from '../../coordinator/nodes/node-telemetry.ts'
import { observeOpenQueries } from '../../coordinator/query/registry/open-query-meter.ts'
import type { QueryRegistry } from '../../coordinator/query/registry/query-registry.ts'
import type { FindingKind } from '../../events/audit/finding.ts'
import type { ProjectionRunner } from '../../events/projection-runner.ts'
import { observeDuckDbMemory, observeEngines } from '../../execution/engine/engine-telemetry.ts'
import { processMemoryLimit } from '../../execution/engine/sandbox.ts'
import { observeAudits } from '../../readmodels/audit/audit-meter.ts'
import { observeProjection } from '../../readmodels/projection-meter.ts'
import { observePool } from '../../readmodels/read-telemetry.ts'
import type { Meters } from '../../telemetry/meters.ts'
import type { GaugeName } from '../../telemetry/metric-names.ts'
import type { CoordinatorBase } from './wire-base.ts'

/** The sources of a writer's gauges, read once before each scrape. */
export interface WriterGauges {
  readonly base: Pick<CoordinatorBase, 'log' | 'logTelemetry' | 'ownRead' | 'engine' | 'engineUse' | 'pool'>
  readonly epoch: number
  readonly ready: () => boolean
  readonly projection: ProjectionRunner
  readonly registry: QueryRegistry
  readonly workers: Membership
  readonly clusters: Pick<ClusterControl, 'groups' | 'waitingIn'>
  readonly groups: ResourceGroups
  readonly counted: CountedBefore
}

/**
 * The restarts and findings that this process has already added to its metrics. The process may become the writer more
 * than once.
 */
export interface CountedBefore {
  /** By process and reason. */
  readonly restarts: Map<string, number>
  readonly findings: Map<FindingKind, number>
}

/** The metrics of a following coordinator. Only the writer reports figures of the cluster. */
export interface FollowerGauges {
  readonly base: Pick<CoordinatorBase, 'pool'>
  /** False once this process writes. */
  readonly follows: () => boolean
  readonly ready: () => boolean
  /** Time since the writer's last sign of life. */
  readonly writerSilentMs: () => number
}

export function observeFollower({ base, follows, ready, writerSilentMs }: FollowerGauges, meters: Meters): void {
  meters.onScrape(() => {
    if (!follows()) return
    meters.set('writer', {}, 0)
    meters.set('epoch', {}, 0)
    meters.set('writerSilence', {}, writerSilentMs() / 1000)
    meters.set('ready', {}, ready() ? 1 : 0)
  })
  observePool(base.pool, meters)
}

export function observeWriter(gauges: WriterGauges, meters: Meters): void {
  const { base, projection } = gauges
  const killBytes = processMemoryLimit(base.engineUse.memoryLimitBytes)
  meters.onScrape(() => {
    meters.set('writer', {}, 1)
    meters.set('writerSilence', {}, 0)
    meters.set('epoch', {}, gauges.epoch)
    meters.set('ready', {}, gauges.ready() && projection.condition.kind !== 'stopped' ? 1 : 0)
    observeEngines(base.engine, killBytes, meters)
  })
  observeOpenQueries(gauges.registry, meters)
  observeWorkers(gauges.workers, meters)
  observeClusters(gauges.clusters, meters)
  observeGroups(gauges.groups, meters)
  observePool(base.pool, meters)
  observeDuckDbMemory(base.engine, meters)
  observeAudits(base.ownRead, meters, gauges.counted.findings)
  meters.onScrape(() => base.logTelemetry.observe(base.log, meters))
  observeProjection(projection, base.ownRead, meters)
}

/** Meters of a role that may end before its process does. */
export interface MetersOfRole {
  readonly meters: Meters
  /** Stops collecting, and removes the gauges that were set. */
  end(): void
}

export function metersOfRole(meters: Meters): MetersOfRole {
  const gauges = new Set<GaugeName>()
  const role: { collectors: (() => void | Promise<void>)[] } = { collectors: [] }
  return {
    meters: {
      ...meters,
      set(name, labels, value) {
        gauges.add(name)
        meters.set(name, labels, value)
      },
      onScrape(collect) {
        const index = role.collectors.push(collect) - 1
        meters.onScrape(() => role.collectors[index]?.())
      },
    },
    end() {
      role.collectors = []
      for (const name of gauges) meters.unset(name)
    },
  }
}
