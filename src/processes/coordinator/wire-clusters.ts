import { createClusterDirectory, type ClusterControl } from '../../coordinator/clusters/cluster-directory.ts'
import type { ClusterFiles } from '../../coordinator/clusters/cluster-files.ts'
import { createClusterTelemetry } from '../../coordinator/clusters/cluster-telemetry.ts'
import type { Checkpoint } from '../../events/event-log.ts'
import { systemClock as clock } from '../../shared/clock.ts'
import type { CoordinatorBase } from './wire-base.ts'

const NO_FILES: ClusterFiles = { clusters: [], tlsFiles: [] }

/** Makes and starts the directory of clusters of the coordinator that writes. @param begin the end of the log then */
export async function wireClusters(base: CoordinatorBase, begin: Checkpoint): Promise<ClusterControl> {
  const { access, clusterStates: states, log, config, telemetry } = base
  const clusters = createClusterDirectory({
    files: access.clusters ?? (() => NO_FILES),
    states,
    log,
    begin,
    clock,
    beatMs: config.timeouts.clustersBeatMs,
    waitMs: config.timeouts.workerWaitMs,
    telemetry: createClusterTelemetry(telemetry.meters, telemetry.logger),
  })
  await clusters.start()
  return clusters
}
