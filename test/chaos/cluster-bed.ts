import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../support/statement-client.ts'
import { temporaryFolder, waitUntil } from '../support/quipu-process.ts'
import { startClusterProxy, type ClusterProxyOptions } from './cluster-proxy.ts'
import type { ClusterTarget } from './faults.ts'
import { canMount, mountDisk, type OwnDisk } from './own-disk.ts'
import type { Plan } from './plan.ts'
import { SeenProcesses } from './process-tree.ts'
import { ChaosServer } from './server.ts'
import type { DataTemplate } from './template.ts'
import { CREATE_LEDGER } from './writing-client.ts'

/** A gateway with two clusters behind proxies. The clusters have all tables, so that the statements of the mix go there. */
export interface ClusterBed {
  readonly folder: string
  readonly gateway: ChaosServer
  readonly clusters: readonly (ClusterTarget & { readonly name: string; readonly server: ChaosServer })[]
  readonly seen: SeenProcesses
  close(): Promise<void>
}

export const CLUSTER_NAMES = ['alpha', 'beta'] as const
/** A cluster abandons a query whose client is silent for this time. */
const CLUSTER_ABSENT_MS = 2_000
/** The gateway waits longer for its clients. */
const GATEWAY_ABSENT_MS = 6_000
/** How long a client pauses: longer than a cluster waits, and shorter than the gateway waits. */
export const PAUSE_MS = 3_000

export async function startClusterBed(
  plan: Plan,
  template: DataTemplate,
  proxyOptions: Omit<ClusterProxyOptions, 'target'>,
): Promise<ClusterBed> {
  const folder = temporaryFolder()
  const stop: (() => Promise<unknown>)[] = []
  const start = async (
    name: string,
    settings: Readonly<Record<string, string>>,
    withDisk = false,
  ): Promise<{ readonly server: ChaosServer; readonly disk: OwnDisk | undefined }> => {
    const own = temporaryFolder()
    stop.push(() => own.remove())
    const disk = withDisk ? await mountDisk(own.path) : undefined
    if (disk) stop.push(() => disk.remove())
    await template.copyTo(join(own.path, name), 'postgres')
    const server = await ChaosServer.start({ folder: own.path, plan, name, settings })
    stop.push(() => server.stop())
    return { server, disk }
  }
  try {
    const hasDisks = await canMount()
    const clusters = await Promise.all(
      CLUSTER_NAMES.map(async (name) => {
        const { server, disk } = await start(name, { QUIPU_CLIENT_ABSENT_MS: `${CLUSTER_ABSENT_MS}ms` }, hasDisks)
        const proxy = await startClusterProxy({ ...proxyOptions, target: server.base })
        stop.push(() => proxy.close())
        return { name, server, proxy, disk }
      }),
    )
    const { server: gateway } = await start('gateway', {
      ...filesOf(
        folder.path,
        clusters.map(({ name, proxy }) => ({ name, port: proxy.port })),
      ),
      QUIPU_CLIENT_ABSENT_MS: `${GATEWAY_ABSENT_MS}ms`,
      QUIPU_CLUSTERS_BEAT_MS: '500ms',
      QUIPU_WORKER_WAIT_MS: '10s',
    })
    const seen = new SeenProcesses(gateway.dataDir)
    stop.push(async () => seen.stop())
    const bed = {
      folder: gateway.dataDir,
      gateway,
      clusters,
      seen,
      async close() {
        for (const end of stop.toReversed()) await end()
        await folder.remove()
      },
    }
    await waitUntil('the ledger exists', async () => !(await run(gateway.base, CREATE_LEDGER)).error)
    return bed
  } catch (error) {
    for (const end of stop.toReversed()) await end().catch(() => {})
    await folder.remove()
    throw error
  }
}

/** Writes catalogs, clusters and rules of the gateway. @returns its variables */
function filesOf(
  folder: string,
  clusters: readonly { readonly name: string; readonly port: number }[],
): Record<string, string> {
  const write = (path: string, content: unknown): void =>
    writeFileSync(join(folder, path), JSON.stringify(content), { mode: 0o644 })
  for (const name of ['catalogs', 'clusters']) mkdirSync(join(folder, name))
  write('catalogs/own.json', { connector: 'memory' })
  for (const [index, { name, port }] of clusters.entries()) {
    const cluster = { url: `http://127.0.0.1:${port}`, maxRunning: 4, clientTimeout: `${CLUSTER_ABSENT_MS}ms` }
    write(`clusters/${name}.json`, { ...cluster, group: 'big', catalogs: ['tpch'] })
    // The tables that statements change are at the first cluster only.
    if (index === 0)
      write(`clusters/${name}-writes.json`, { ...cluster, group: 'writes', catalogs: ['tpch', 'memory'] })
  }
  write('rules.json', {
    rules: [
      { name: 'writes', match: { catalogs: ['memory'] }, route: { group: 'writes' } },
      { name: 'reads', match: { catalogs: ['tpch'] }, route: { group: 'big' } },
    ],
  })
  return {
    QUIPU_CATALOG_DIR: join(folder, 'catalogs'),
    QUIPU_CLUSTERS_DIR: join(folder, 'clusters'),
    QUIPU_ROUTING_RULES_FILE: join(folder, 'rules.json'),
  }
}
