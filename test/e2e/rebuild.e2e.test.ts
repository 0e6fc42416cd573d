import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { postgresOf, spawnQuipu, temporaryFolder } from '../support/quipu-process.ts'
import { run } from '../support/statement-client.ts'

let folder: ReturnType<typeof temporaryFolder>
beforeAll(() => void (folder = temporaryFolder()))
afterAll(() => folder.remove())

it(
  'quipu rebuild makes the read models again, beside a running server and without one',
  { timeout: 240_000 },
  async () => {
    const data = join(folder.path, 'data')
    const env = { QUIPU_LOG_LEVEL: 'error' }
    const quipu = spawnQuipu(['start', '--port', '0', '--data-dir', data], { env })
    const url = await quipu.url
    const { id, rows } = await run(url, 'SELECT count(*) FROM tpch.tiny.nation')
    expect(rows).toEqual([[25]])
    const queryOf = async () => (await fetch(`${url}/v1/query/${id}`)).json()
    const before = await queryOf()

    const beside = await spawnQuipu(['rebuild', '--data-dir', data], { env }).exit
    expect(beside).toMatchObject({ code: 0, stderr: '' })
    expect(beside.stdout).toMatch(/^Rebuilt from [1-9]\d* events in /)
    expect(await queryOf()).toEqual(before)
    expect((await run(url, 'SELECT 1')).rows).toEqual([[1]])
    quipu.signal('SIGTERM')
    expect((await quipu.exit).code).toBe(0)

    const alone = await spawnQuipu(['rebuild', '--data-dir', data], { env }).exit
    expect(alone).toMatchObject({ code: 0, stderr: '' })
    const events = (text: string) => Number(/from (\d+)/.exec(text)![1])
    expect(events(alone.stdout)).toBeGreaterThan(events(beside.stdout))
    expect(postgresOf(data)).toBeUndefined()
  },
)
