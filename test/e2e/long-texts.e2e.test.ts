import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { processesOf } from '../support/quipu-process.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { post, run, trinoHeaders } from '../support/statement-client.ts'

/* Many long statements arrive at the same time. */

// On a busy machine 400 MB take a while.
const server = serverOfFile('error', () => ({ QUIPU_REQUEST_HEAD_MS: '2m', QUIPU_REQUEST_MS: '5m' }))

const peakBytes = (pid: number): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

it(
  '400 statements of 1 MB at once are bounded per address by 429, and the coordinator stays below 1 GB',
  { timeout: 400_000 },
  async () => {
    const coordinator = processesOf(server.data).children[0]!
    const answers = await Promise.all(
      Array.from({ length: 400 }, (_, index) =>
        post(server.url, `CREATE TABLE memory.default.t${index} AS SELECT 1 x /* ${'x'.repeat(1e6 - 100)} */`, {
          ...trinoHeaders,
          'x-trino-user': `u${index % 7}`,
        }),
      ),
    )
    const statuses = answers.map(({ status }) => status)
    expect([...new Set(statuses)].toSorted()).toEqual([200, 429])
    // One address may send 64 MB, for all its users together.
    expect(statuses.filter((status) => status === 200).length).toBeLessThan(70)
    expect((await run(server.url, 'SELECT 1', { ...trinoHeaders, 'x-trino-user': 'ana' })).rows).toEqual([[1]])
    if (process.platform === 'linux') expect(peakBytes(coordinator)).toBeLessThan(1_000e6)
  },
)
