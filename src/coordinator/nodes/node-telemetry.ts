import type { Logger } from '../../telemetry/logger.ts'
import type { Meters } from '../../telemetry/meters.ts'
import type { NodeEvent } from './events.ts'
import type { Membership } from './membership.ts'

/**
 * Reports workers that come and go, as log lines and in a counter. A worker is logged when it serves for the first
 * time, and again only after it was logged as lost.
 */
export function createNodeEvents(meters: () => Meters, logger: Logger): (event: NodeEvent) => void {
  const serving = new Set<string>()
  return ({ type, data }) => {
    const about = { worker: data.nodeId, url: data.url }
    const worker = `${data.nodeId} ${data.url}`
    switch (type) {
      case 'NodeJoined':
      case 'NodeRecovered':
        if (serving.has(worker)) return
        serving.add(worker)
        return logger.info('worker.joined', about, 'A worker joined and serves')
      case 'NodeSuspected':
        return
      case 'NodeFailed':
        serving.delete(worker)
        meters().count('workerFailures', { reason: data.reason })
        return logger.warn(
          'worker.lost',
          { ...about, reason: data.reason },
          'A worker is lost: other workers run its tasks again',
        )
      case 'NodeLeft':
        serving.delete(worker)
        meters().count('workerFailures', { reason: 'left' })
        return logger.info('worker.lost', { ...about, reason: 'left' }, 'A worker left')
    }
  }
}

/** Before each scrape, sets the number of workers and when each was last heard of. */
export function observeWorkers(workers: Pick<Membership, 'nodes'>, meters: Meters): void {
  meters.onScrape(() => {
    const nodes = workers.nodes()
    for (const state of ['active', 'suspect', 'failed'] as const)
      meters.set('workers', { state }, nodes.filter((node) => node.state === state).length)
    meters.unset('workerHeartbeatAge')
    for (const node of nodes) meters.set('workerHeartbeatAge', { worker: node.nodeId }, node.silentMillis / 1000)
  })
}
