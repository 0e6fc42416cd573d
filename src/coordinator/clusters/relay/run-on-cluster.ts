import { z } from 'zod'
import { endingAfter } from '../../../shared/deadline.ts'
import { EngineError } from '../../../shared/engine-error.ts'
import { parseJson } from '../../../shared/parse-json.ts'
import { readWhole } from './read-whole.ts'
import { ClusterLost, type RelayPort, type RelayTarget, type RemoteUri } from './relay-port.ts'

/** A small statement of this gateway, and its limits. */
export interface OwnStatement {
  readonly sql: string
  /** The user that it runs as; undefined: the user of the gateway's credentials. */
  readonly user: string | undefined
  /** How long it may take, milliseconds. */
  readonly withinMs: number
  /** The most bytes of all its rows. */
  readonly mostBytes: number
}

const rowsSchema = z.array(z.array(z.unknown()))
const NEVER = new AbortController().signal

/**
 * Runs a small statement of this gateway at a cluster. A statement that exceeds its limits is canceled there.
 * @returns the rows in the protocol's JSON values
 * @throws ClusterLost, also when the time is over; EngineError when the statement fails at the cluster, or its rows
 * take too many bytes
 */
export async function runOnCluster(
  relay: Pick<RelayPort, 'post' | 'fetch' | 'cancel'>,
  cluster: RelayTarget,
  { sql, user, withinMs, mostBytes }: OwnStatement,
): Promise<readonly (readonly unknown[])[]> {
  const limit = endingAfter(withinMs, NEVER)
  let uri: RemoteUri | undefined
  try {
    const rows: (readonly unknown[])[] = []
    ;({ uri } = await relay.post(cluster, { sql, user, headers: { 'x-trino-source': 'quipu' } }, limit.signal))
    for (let left = mostBytes; uri !== undefined;) {
      const answer = await relay.fetch(cluster, uri, limit.signal)
      const { rows: some, tail } = await readWhole(cluster.name, answer, left, () => tooLarge(cluster.name, mostBytes))
      if (tail.error) {
        uri = undefined
        throw new EngineError('GENERIC_INTERNAL_ERROR', `Cluster ${cluster.name}: ${tail.error.message}`)
      }
      if (some) {
        left -= some.length
        for (const row of readRows(cluster.name, some)) rows.push(row)
      }
      uri = answer.head.nextUri
    }
    return rows
  } catch (error) {
    if (limit.isOver()) throw new ClusterLost(cluster.name, 'stalled', `gave no answer within ${withinMs} ms`)
    throw error
  } finally {
    limit.clear()
    // The cluster must not go on with a statement whose rows nobody reads.
    if (uri !== undefined) void relay.cancel(cluster, uri).catch(() => {})
  }
}

function readRows(cluster: string, bytes: Buffer): readonly (readonly unknown[])[] {
  const read = rowsSchema.safeParse(parseJson(bytes.toString('utf8')))
  if (read.success) return read.data
  throw new ClusterLost(cluster, 'nonsense', 'its rows are not lists of values')
}

function tooLarge(cluster: string, mostBytes: number): EngineError {
  return new EngineError(
    'EXCEEDED_LOCAL_MEMORY_LIMIT',
    `Cluster ${cluster} lists more than ${mostBytes} bytes of names: ask for one schema or one table`,
  )
}
