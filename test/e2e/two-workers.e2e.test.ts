import { expect, it } from 'vitest'
import { internalBearer, loadClusterSecret } from '../../src/security/cluster-secret.ts'
import { processesOf, spawnQuipu, waitUntil } from '../support/quipu-process.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { post, raw, run } from '../support/statement-client.ts'

const server = serverOfFile('warn', () => ({ QUIPU_WORKERS: '2' }))

const rows = async (sql: string): Promise<readonly (readonly unknown[])[]> => (await run(server.url, sql)).rows

it('two workers share sequential and concurrent statements', { timeout: 240_000 }, async () => {
  await waitUntil('both are active', async () => {
    const nodes = await rows("SELECT count(*) FROM system.runtime.nodes WHERE state = 'active' AND NOT coordinator")
    return nodes[0]?.[0] === 2
  })
  const count = 'SELECT count(*) FROM tpch.tiny.orders'
  for (let statement = 0; statement < 6; statement++) expect(await rows(count)).toEqual([[15_000]])
  await Promise.all(Array.from({ length: 6 }, async () => expect(await rows(count)).toEqual([[15_000]])))
  const tasks = await rows(
    `SELECT t.node_id, count(*) FROM system.runtime.tasks t JOIN system.runtime.queries q ON t.query_id = q.query_id
     WHERE q.query = '${count}' AND t.stage_id LIKE '%.1' GROUP BY 1 ORDER BY 1`,
  )
  const counts = tasks.map(([, each]) => Number(each))
  expect(counts).toHaveLength(2)
  expect(counts.reduce((sum, each) => sum + each, 0)).toBe(12)
  expect(Math.min(...counts)).toBeGreaterThanOrEqual(3)
})

/** Starts a statement that occupies its worker until its rows are read or it is canceled. @returns cancels it */
async function unread(): Promise<() => Promise<unknown>> {
  let { json } = await post(server.url, 'SELECT a.* FROM tpch.tiny.lineitem a, tpch.tiny.nation b')
  while (json.data === undefined) ({ json } = await raw(json.nextUri!))
  const { nextUri } = json
  return () => raw(nextUri!, { method: 'DELETE' })
}

interface NodeJson {
  readonly nodeId: string
  readonly state: string
}
const nodesNow = async (): Promise<readonly NodeJson[]> =>
  (await (await fetch(`${server.url}/v1/node`)).json()) as readonly NodeJson[]

it(
  'a drained worker finishes its tasks, gets no new ones, and is not started again',
  { timeout: 240_000 },
  async () => {
    const [first, second] = await nodesNow()
    const before = processesOf(server.data).children.length
    const put = async (nodeId: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
      (await fetch(`${server.url}/v1/node/${nodeId}/state`, { method: 'PUT', headers, body: JSON.stringify(body) }))
        .status
    const key = { authorization: `Bearer ${internalBearer(loadClusterSecret(server.data, undefined))}` }
    // Without authentication no user may drain a node.
    expect(await put(first!.nodeId, 'SHUTTING_DOWN', { 'x-trino-user': 'admin' })).toBe(401)
    expect(await put('worker-of-nobody', { state: 'SHUTTING_DOWN', by: 'ana' }, key)).toBe(404)
    expect(await put(first!.nodeId, { state: 'ACTIVE', by: 'ana' }, key)).toBe(400)
    expect((await nodesNow()).map(({ state }) => state)).toEqual(['active', 'active'])
    // One for each worker: a draining worker stays until its query is canceled.
    const held = [await unread(), await unread()]
    // Tasks run on both workers; all statements finish as without a drain.
    const count = 'SELECT count(*) FROM tpch.tiny.lineitem a, tpch.tiny.nation b WHERE a.orderkey > b.nationkey'
    const [expected] = await rows(count)
    const running = Array.from({ length: 6 }, () => rows(count))
    const drain = (): Promise<number> => put(first!.nodeId, { state: 'SHUTTING_DOWN', by: 'ana' }, key)
    expect(await Promise.all([drain(), drain(), drain()])).toEqual([200, 200, 200])
    const drained = spawnQuipu(['drain', '--node', first!.nodeId, '--by', 'ana', '--data-dir', server.data], {
      env: { DATABASE_URL: server.database },
    })
    expect(await drained.exit).toMatchObject({ code: 0, stdout: expect.stringContaining('takes no new tasks') })
    const answers = await Promise.all(running)
    for (const cancel of held) await cancel()
    expect(answers.map(([row]) => row)).toEqual(answers.map(() => expected))
    await rows('SELECT count(*) FROM tpch.tiny.orders')
    const after = await rows(
      `SELECT DISTINCT t.node_id FROM system.runtime.tasks t JOIN system.runtime.queries q ON t.query_id = q.query_id
     WHERE q.query = 'SELECT count(*) FROM tpch.tiny.orders' AND t.stage_id LIKE '%.1'
       AND q.created = (SELECT max(created) FROM system.runtime.queries WHERE query = 'SELECT count(*) FROM tpch.tiny.orders')`,
    )
    expect(after).toEqual([[second!.nodeId]])
    const reported = await fetch(`${server.url}/v1/events?after=beginning&type=NodeDrainAsked`)
    const reader = reported.body!.getReader()
    let text = ''
    while (!text.includes('"by":"ana"')) text += new TextDecoder().decode((await reader.read()).value)
    await reader.cancel()
    expect(text.split('NodeDrainAsked')).toHaveLength(2)
    expect(text).toContain('"before":"active","after":"shutting_down"')
    // Small results are stored without the worker; the supervisor does not start it again.
    await waitUntil('it has gone', async () => (await nodesNow()).every(({ nodeId }) => nodeId !== first!.nodeId))
    await waitUntil('its process has ended', () => server.process.stderr().includes('has ended as requested'))
    expect(processesOf(server.data).children).toHaveLength(before - 1)
    expect(await rows('SELECT count(*) FROM tpch.tiny.orders')).toEqual([[15_000]])
  },
)
