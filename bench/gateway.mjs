// A Quipu in front of a cluster: clients with the source `everything` send all statements there.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient, startServer } from './quipu-server.mjs'

export const SOURCE = 'everything'

/** Starts the server, and waits until the cluster takes statements. */
export async function startGateway(cluster, env = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'quipu-bench-cluster-'))
  chmodSync(folder, 0o755)
  const write = (path, content) => {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), JSON.stringify(content), { mode: 0o644 })
    return join(folder, path)
  }
  write('clusters/far.json', { url: cluster.base, group: 'big', catalogs: ['far'] })
  const rules = [{ name: 'all', match: { source: SOURCE }, route: { group: 'big' }, unchecked: true }]
  const server = await startServer({
    // The `dist/cli/quipu.js` of another build.
    program: process.env.BENCH_PROGRAM,
    env: {
      QUIPU_CLUSTERS_DIR: join(folder, 'clusters'),
      QUIPU_ROUTING_RULES_FILE: write('routing.json', { rules }),
      ...env,
    },
  })
  const client = createClient(server.base)
  while (!String((await client.send('GET', '/v1/cluster')).body).includes('"HEALTHY"'))
    await new Promise((resolve) => setTimeout(resolve, 100))
  client.close()
  return {
    ...server,
    async stop() {
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
