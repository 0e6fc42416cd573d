import { endingAfter } from '../../../shared/deadline.ts'
import { EngineError } from '../../../shared/engine-error.ts'
import { readRowsInSlices } from './rows-in-slices.ts'
import { ClusterLost, type RelayPort, type RelayTarget, type RemoteUri } from './relay-port.ts'

/** A small statement of this gateway, and its limits. */
export interface OwnStatement {
  readonly sql: string
  /** The user that it runs as; undefined: the user of the gateway's credentials. */
  readonly user: string | undefined
  /** The longest time of the statement, milliseconds. */
  readonly withinMs: number
  /** The most bytes of all rows together. */
  readonly mostBytes: number
  /** The most rows. */
  readonly mostRows: number
}

const NEVER = new AbortController().signal

/**
 * Runs a small statement of this gateway at a cluster. A statement that exceeds its limits is canceled there.
 * @returns the rows in the protocol's JSON values
 * @throws ClusterLost, also when the time is over; EngineError when the statement fails at the cluster, or its rows
 * are too many
 */
export async function runOnCluster(
  relay: Pick<RelayPort, 'post' | 'fetch' | 'cancel'>,
  cluster: RelayTarget,
  { sql, user, withinMs, mostBytes, mostRows }: OwnStatement,
): Promise<readonly (readonly unknown[])[]> {
  const limit = endingAfter(withinMs, NEVER)
  let uri: RemoteUri | undefined
  try {
    const rows: (readonly unknown[])[] = []
    ;({ uri } = await relay.post(cluster, { sql, user, headers: { 'x-trino-source': 'quipu' } }, limit.signal))
    let bytes = 0
    const take = (some: readonly (readonly unknown[])[], ofBytes: number): void => {
      bytes += ofBytes
      if (bytes > mostBytes) throw tooLarge(cluster.name, `${mostBytes} bytes of names`)
      if (rows.length + some.length > mostRows) throw tooLarge(cluster.name, `${mostRows} names`)
      for (const row of some) rows.push(row)
    }
    while (uri !== undefined) {
      const answer = await relay.fetch(cluster, uri, limit.signal)
      const tail = await readRowsInSlices(cluster.name, answer, take)
      if (tail.error) {
        uri = undefined
        // This server was too slow: that says nothing about the statement.
        if (tail.error.errorName === 'ABANDONED_QUERY') throw new ClusterLost(cluster.name, 'gone', tail.error.message)
        throw new EngineError('GENERIC_INTERNAL_ERROR', `Cluster ${cluster.name}: ${tail.error.message}`)
      }
      uri = answer.head.nextUri
    }
    return rows
  } catch (error) {
    if (limit.isOver()) throw new ClusterLost(cluster.name, 'stalled', `gave no answer within ${withinMs} ms`)
    throw error
  } finally {
    limit.clear()
    // The cluster must not continue with a statement whose rows nobody reads.
    if (uri !== undefined) void relay.cancel(cluster, uri).catch(() => {})
  }
}

function tooLarge(cluster: string, limit: string): EngineError {
  return new EngineError(
    'EXCEEDED_LOCAL_MEMORY_LIMIT',
    `Cluster ${cluster} lists more than ${limit}: ask for one schema or one table`,
  )
}
