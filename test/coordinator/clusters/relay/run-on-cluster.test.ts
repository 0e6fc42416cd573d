import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  ClusterLost,
  type RelayPort,
  type RelayTarget,
  type RemoteError,
  type RemoteUri,
} from '../../../../src/coordinator/clusters/relay/relay-port.ts'
import { runOnCluster } from '../../../../src/coordinator/clusters/relay/run-on-cluster.ts'

const NEXT = '/v1/statement/executing/remote/1' as RemoteUri

/** Runs a statement at a stand-in for a cluster, whose one answer has these bytes as its rows. */
async function answered(chunks: readonly Buffer[] | undefined, mostRows = 1_000_000, error?: RemoteError) {
  const canceled: string[] = []
  async function* data() {
    yield* chunks ?? []
  }
  const relay: Pick<RelayPort, 'post' | 'fetch' | 'cancel'> = {
    post: async () => ({ remoteId: 'remote', uri: NEXT }),
    fetch: async () => ({
      head: { id: 'remote' },
      headers: [],
      data: chunks && data(),
      tail: Promise.resolve({ stats: {}, warnings: [], rowsBytes: 0, ...(error && { error }) }),
    }),
    cancel: async (_cluster, uri) => void canceled.push(uri),
  }
  const statement = { sql: 'SELECT 1', user: undefined, withinMs: 600_000, mostBytes: 16 * 1024 * 1024, mostRows }
  const cluster: Partial<RelayTarget> = { name: 'trino-a' as RelayTarget['name'] }
  const rows = runOnCluster(relay, cluster as RelayTarget, statement)
  return { rows, canceled }
}

function cut(text: string, sizes: Iterable<number>): Buffer[] {
  const bytes = Buffer.from(text)
  const chunks: Buffer[] = []
  let at = 0
  for (const size of sizes) {
    if (at >= bytes.length) break
    chunks.push(bytes.subarray(at, at + size))
    at += size
  }
  return chunks
}

describe('A statement about metadata at a cluster', () => {
  it('gives the rows that JSON.parse reads, wherever their chunks are cut', async () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('],[', '"]', '\\', '[[', 'é😀', '}', ' '))
    const row = fc.array(fc.oneof(text, fc.integer(), fc.constant(null), fc.boolean()), { maxLength: 4 })
    const sizes = fc.infiniteStream(fc.integer({ min: 1, max: 30 }))
    const indent = fc.constantFrom(undefined, 1)
    await fc.assert(
      fc.asyncProperty(fc.array(row, { maxLength: 8 }), sizes, indent, async (all, some, blanks) => {
        const { rows } = await answered(cut(JSON.stringify(all, null, blanks), some))
        expect(await rows).toEqual(JSON.parse(JSON.stringify(all)))
      }),
    )
    expect(await (await answered(undefined)).rows).toEqual([])
  })

  it('counts as unanswered if the cluster abandoned it, because this server was slow', async () => {
    const error = { message: 'was abandoned', errorCode: 1, errorName: 'ABANDONED_QUERY', errorType: 'USER_ERROR' }
    const { rows } = await answered(undefined, 1, error)
    await expect(rows).rejects.toBeInstanceOf(ClusterLost)
    const failed = await answered(undefined, 1, { ...error, errorName: 'PERMISSION_DENIED' })
    await expect(failed.rows).rejects.toMatchObject({ errorName: 'GENERIC_INTERNAL_ERROR' })
  })

  it('lets other work run while it reads a large answer', async () => {
    const { rows } = await answered([Buffer.from(`[${'["orders"],'.repeat(200_000)}["last"]]`)])
    let isReading = true
    let passes = 0
    const count = (): void => {
      passes++
      if (isReading) setImmediate(count)
    }
    setImmediate(count)
    expect(await rows.finally(() => (isReading = false))).toHaveLength(200_001)
    expect(passes).toBeGreaterThan(20)
  })

  it('fails if it has more rows than the limit', async () => {
    const { rows, canceled } = await answered([Buffer.from('[[1],[2],[3]]')], 2)
    await expect(rows).rejects.toMatchObject({ errorName: 'EXCEEDED_LOCAL_MEMORY_LIMIT' })
    expect(canceled).toEqual([NEXT])
  })

  it('fails if one row is too long to be parsed at once', async () => {
    const { rows } = await answered([Buffer.from(`[[${'1,'.repeat(1024 * 1024)}1]]`)])
    await expect(rows).rejects.toMatchObject({ errorName: 'EXCEEDED_LOCAL_MEMORY_LIMIT' })
  })

  it.each(['[1]', '[{"a":1}]', '[[[1]]]', '[["a"]', '[["a"],]', '[["a"]],[["b"]]', '[["a"]["b"]]', '[["a],', ''])(
    'fails if its rows are %s',
    async (text) => {
      const { rows } = await answered(cut(text, [2, 1, 3, 100]))
      await expect(rows).rejects.toMatchObject({ reason: 'nonsense' })
    },
  )
})
