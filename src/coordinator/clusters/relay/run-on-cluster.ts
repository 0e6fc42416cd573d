import { z } from 'zod'
import { EngineError } from '../../../shared/engine-error.ts'
import { parseJson } from '../../../shared/parse-json.ts'
import type { RelayPort, RelayTarget } from './relay-port.ts'

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
    const parts: Buffer[] = []
    answer.tail.catch(() => {})
    if (answer.data) for await (const part of answer.data) parts.push(part)
    const { error } = await answer.tail
    if (error) throw new EngineError('GENERIC_INTERNAL_ERROR', `Cluster ${cluster.name}: ${error.message}`)
    if (answer.data) rows.push(...rowsSchema.parse(parseJson(Buffer.concat(parts).toString('utf8'))))
    uri = answer.head.nextUri
  }
  return rows
}
