import { join } from 'node:path'
import { createMigratedDatabase } from './event-log/migrated-database.ts'
import { freePort, type TestDatabase } from './postgres.ts'
import { killAll, processesOf, spawnQuipu, temporaryFolder, waitUntil, type QuipuProcess } from './quipu-process.ts'
import { raw } from './statement-client.ts'

export const CLUSTER_SECRET = 'a secret that all of them know'

/** A coordinator program of a cluster: its supervisor, with a fixed data folder and port. */
export interface ClusterNode {
  readonly name: string
  readonly dataDir: string
  url: string
  process: QuipuProcess
  /** The pid of the coordinator, not of its supervisor. */
  coordinator(): number
  /** Sends SIGKILL to the supervisor and the coordinator, as if the machine were gone. */
  kill(): Promise<void>
  /** Starts the program again, on the same port. */
  start(): Promise<void>
}

export interface StandbyCluster {
  readonly a: ClusterNode
  readonly b: ClusterNode
  readonly databaseUrl: string
  stop(): Promise<void>
}

/** Two coordinators on one database, each a stand-by of the other, and a worker that knows both. */
export async function startStandbyCluster(
  env: Readonly<Record<string, string>> = {},
  database?: TestDatabase,
): Promise<StandbyCluster> {
  const folder = temporaryFolder()
  database ??= await createMigratedDatabase()
  const { url: databaseUrl } = database
  const shared = {
    QUIPU_SHARED_SECRET: CLUSTER_SECRET,
    QUIPU_LOG_LEVEL: 'error',
    // The writer must not lose its role on a busy machine.
    QUIPU_WRITER_SILENT_MS: '5s',
    ...env,
  }

  async function node(name: string): Promise<ClusterNode> {
    const dataDir = join(folder.path, name)
    const spawn = (port: string): QuipuProcess =>
      spawnQuipu(['coordinator', '--standby', '--port', port, '--data-dir', dataDir], {
        env: { ...shared, DATABASE_URL: databaseUrl },
      })
    const port = String(await freePort())
    const process = spawn(port)
    const one: ClusterNode = {
      name,
      dataDir,
      process,
      url: await process.url,
      coordinator: () => processesOf(dataDir).children[0]!,
      async kill() {
        const pids = [one.process.pid, one.coordinator()]
        killAll(pids)
        await one.process.exit
      },
      async start() {
        one.process = spawn(port)
        await one.process.url
      },
    }
    return one
  }

  const a = await node('a')
  const b = await node('b')
  const worker = spawnQuipu(
    ['worker', '--port', '0', '--data-dir', join(folder.path, 'worker'), '--coordinators', `${a.url},${b.url}`],
    { env: shared },
  )
  await waitUntil('the worker is up', () => worker.stdout().startsWith('Worker up in '), 60_000)
  return {
    a,
    b,
    databaseUrl,
    async stop() {
      for (const { process } of [a, b, { process: worker }]) {
        try {
          process.signal('SIGTERM')
        } catch {
          // A test has killed it.
        }
      }
      await Promise.all([a, b, { process: worker }].map(({ process }) => process.exit))
      await folder.remove()
      await database.drop()
    },
  }
}

/** Whether the coordinator reports that it writes the log. */
export async function writes(node: ClusterNode): Promise<boolean> {
  const answer = await raw(`${node.url}/v1/info`, { timeoutMs: 1000 }).catch(() => undefined)
  return answer?.status === 200 && (JSON.parse(answer.text) as { writer?: boolean }).writer === true
}

/** Whether the coordinator reports that it follows. */
export async function follows(node: ClusterNode): Promise<boolean> {
  const answer = await raw(`${node.url}/v1/info`, { timeoutMs: 1000 }).catch(() => undefined)
  return answer?.status === 200 && (JSON.parse(answer.text) as { writer?: boolean }).writer === false
}

/** The writer and the follower, once their roles are settled. */
export async function rolesOf({ a, b }: StandbyCluster): Promise<{ writer: ClusterNode; other: ClusterNode }> {
  let found: { writer: ClusterNode; other: ClusterNode } | undefined
  await waitUntil(
    'one writes and one follows',
    async () => {
      if ((await writes(a)) && (await follows(b))) found = { writer: a, other: b }
      else if ((await writes(b)) && (await follows(a))) found = { writer: b, other: a }
      return found !== undefined
    },
    120_000,
  )
  return found!
}
