import { z } from 'zod'
import { EngineError } from '../../../shared/engine-error.ts'
import { parseJson } from '../../../shared/parse-json.ts'
import { readWhole } from './read-whole.ts'
import type { RelayPort, RelayTarget } from './relay-port.ts'

/** The most bytes of one answer. Trino's pages have 1 MiB by default, and 128 MiB at most. */
const MOST_BYTES = 128 * 1024 * 1024

const rowsSchema = z.array(z.array(z.unknown()))

/**
 * Runs a small statement of this gateway at a cluster, as the user of the gateway's credentials.
 * @returns the rows in the protocol's JSON values
 * @throws ClusterLost; EngineError when the statement fails at the cluster
 */
export async function runOnCluster(
  relay: Pick<RelayPort, 'post' | 'fetch'>,
  cluster: RelayTarget,
  sql: string,
  signal: AbortSignal,
): Promise<readonly (readonly unknown[])[]> {
  const rows: (readonly unknown[])[] = []
  const posted = await relay.post(cluster, { sql, user: undefined, headers: { 'x-trino-source': 'quipu' } }, signal)
  for (let uri: typeof posted.uri | undefined = posted.uri; uri !== undefined;) {
    const answer = await relay.fetch(cluster, uri, signal)
    const { rows: some, tail } = await readWhole(cluster.name, answer, MOST_BYTES)
    if (tail.error) throw new EngineError('GENERIC_INTERNAL_ERROR', `Cluster ${cluster.name}: ${tail.error.message}`)
    if (some) rows.push(...rowsSchema.parse(parseJson(some.toString('utf8'))))
    uri = answer.head.nextUri
  }
  return rows
}
