import { parseArgs } from 'node:util'
import { z } from 'zod'
import { loadConfig } from '../config/load-config.ts'
import { askCluster, createCheckClient } from '../coordinator/clusters/ask-cluster.ts'
import type { Cluster } from '../coordinator/clusters/cluster.ts'
import { readClusterFiles } from '../coordinator/clusters/cluster-files.ts'
import type { ClusterState } from '../coordinator/clusters/state.ts'
import { readFolder } from '../security/watched-files.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { isClusterName } from '../shared/ids.ts'
import { parseJson } from '../shared/parse-json.ts'
import { putAtWriter } from './ask-writer.ts'
import { askCalled, callServer, SERVER_USAGE, serverFlags } from './called-server.ts'
import { splitFlags, wrongFlags } from './command-flags.ts'
import { userName } from './server-address.ts'
import { reasonOf } from './statement-client.ts'
import { tableFormat } from './table-text.ts'

const USAGE = `usage: quipu cluster list [options]
       quipu cluster drain | activate | deactivate <name> [--reason <text>] [--by <name>] [settings]
       quipu cluster check [settings]

Clusters that delegated statements may run at: one file each, in the folder that --clusters-dir names.

  list         asks a coordinator for the clusters, their state and health, what runs there and what waits
  drain        gives a cluster no new statements; running statements continue
  deactivate   the same, for a cluster that is not to come back soon
  activate     gives a cluster statements again, while it is healthy
  check        reads the files, asks each cluster, and says what is wrong; needs no coordinator

Options of list:

${SERVER_USAGE}

Options of drain, activate and deactivate, which need the secret of the cluster's processes:

  --reason <text>     why, as the event ClusterStateAsked and quipu cluster list tell
  --by <name>         who asks for it (default: the user of this shell)

Exit code 1 of check: a cluster does not take statements. quipu --help has the settings.
`

const EXIT_NOT_READY = 1
/** How long a cluster may take to answer a check of this command. */
const CHECK_MS = 10_000

const states: Readonly<Record<string, ClusterState>> = {
  drain: 'DRAINING',
  activate: 'ACTIVE',
  deactivate: 'INACTIVE',
}

/**
 * `quipu cluster`: lists clusters, changes their state, checks them.
 * @returns the exit code
 * @throws ExitError 64 for wrong arguments, files or names; 69 when no coordinator answers
 */
export async function clusterCommand(argv: readonly string[]): Promise<number> {
  const [action = '', ...rest] = argv
  if (argv.includes('--help')) {
    process.stdout.write(USAGE)
    return 0
  }
  const state = states[action]
  if (state !== undefined) return change(action, state, rest)
  if (action === 'list') return list(rest)
  if (action === 'check') return check(rest)
  throw new ExitError(
    exitCodes.configuration,
    `quipu cluster: list, drain, activate, deactivate or check; see quipu cluster --help`,
  )
}

async function change(action: string, state: ClusterState, argv: readonly string[]): Promise<number> {
  const [name, ...rest] = argv
  if (name === undefined || !isClusterName(name))
    throw new ExitError(
      exitCodes.configuration,
      `'${name ?? ''}' is no name of a cluster: quipu cluster ${action} <name>`,
    )
  const { flags, settings } = splitFlags(rest, { reason: { type: 'string' }, by: { type: 'string' } })
  const { reason, by } = flags
  await putAtWriter(settings, {
    path: `/v1/cluster/${name}/state`,
    body: {
      state,
      by: typeof by === 'string' ? by : userName(),
      ...(typeof reason === 'string' && { reason }),
    },
    without: 'No coordinator runs: start one, then put the cluster into a state',
  })
  process.stdout.write(`${name} is ${state}\n`)
  return 0
}

const listed = z.array(
  z.looseObject({
    name: z.string(),
    group: z.string(),
    url: z.string(),
    state: z.string(),
    health: z.string(),
    reason: z.string().optional(),
    running: z.number(),
    waiting: z.number(),
    version: z.string().optional(),
  }),
)

async function list(argv: readonly string[]): Promise<number> {
  const server = callServer(parseList(argv))
  try {
    const answer = await askCalled(server, 'quipu cluster', '/v1/cluster', { headers: { accept: 'application/json' } })
    if (answer.status !== 200) throw new Error(`The server refused: ${reasonOf(answer.text)} (${answer.status})`)
    const clusters = listed.parse(parseJson(answer.text))
    print(
      ['name', 'group', 'state', 'health', 'running', 'waiting', 'version', 'url', 'reason'],
      clusters.map((one) => [
        one.name,
        one.group,
        one.state,
        one.health,
        one.running,
        one.waiting,
        one.version ?? '',
        one.url,
        one.reason ?? '',
      ]),
    )
    return 0
  } catch (error) {
    throw new ExitError(exitCodes.dependency, (error as Error).message)
  } finally {
    server.http.close()
  }
}

function parseList(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: serverFlags }).values
  } catch (error) {
    throw wrongFlags(error, 'quipu cluster')
  }
}

async function check(argv: readonly string[]): Promise<number> {
  const { clustersDir: folder } = loadConfig(argv, process.env)
  if (folder === undefined)
    throw new ExitError(exitCodes.configuration, 'No setting names a folder of clusters: --clusters-dir')
  let clusters: readonly Cluster[]
  try {
    clusters = readClusterFiles(readFolder(folder), folder).clusters
  } catch (error) {
    throw new ExitError(exitCodes.configuration, `${folder}: ${(error as Error).message}`)
  }
  const results = await Promise.all(clusters.map(checked))
  print(
    ['name', 'group', 'url', 'result', 'version'],
    results.map(({ cluster: { name, group, url }, result, version }) => [name, group, url.origin, result, version]),
  )
  return results.every(({ ready }) => ready) ? 0 : EXIT_NOT_READY
}

async function checked(cluster: Cluster) {
  const http = createCheckClient(cluster)
  try {
    const { starting, version = '' } = await askCluster(cluster, http, CHECK_MS)
    return { cluster, ready: !starting, version, result: starting ? 'it is starting' : 'ready' }
  } catch (error) {
    return { cluster, ready: false, version: '', result: (error as Error).message }
  } finally {
    http.close()
  }
}

function print(names: readonly string[], rows: readonly (readonly unknown[])[]): void {
  const columns = names.map((name) => ({
    name,
    type: name === 'running' || name === 'waiting' ? 'bigint' : 'varchar',
  }))
  const format = tableFormat(columns, rows)
  process.stdout.write(`${format.header()}\n${rows.map((row) => `${format.row(row)}\n`).join('')}`)
}
