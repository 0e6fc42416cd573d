import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createMigratedDatabase } from '../support/event-log/migrated-database.ts'
import { type TestDatabase } from '../support/postgres.ts'
import { isAlive, processesOf, spawnQuipu, temporaryFolder, waitUntil } from '../support/quipu-process.ts'

let folder: ReturnType<typeof temporaryFolder>
let database: TestDatabase
beforeAll(async () => {
  folder = temporaryFolder()
  database = await createMigratedDatabase()
})
afterAll(async () => {
  await folder.remove()
  await database.drop()
})

const secret = { QUIPU_SHARED_SECRET: 'a secret that both sides know', QUIPU_LOG_LEVEL: 'error' }

describe('quipu coordinator and quipu worker', () => {
  it('start apart from each other and drain on SIGTERM', { timeout: 240_000 }, async () => {
    const [home, away] = [join(folder.path, 'coordinator'), join(folder.path, 'worker')]
    const coordinator = spawnQuipu(['coordinator', '--port', '0', '--data-dir', home], {
      env: { ...secret, DATABASE_URL: database.url },
    })
    const url = await coordinator.url
    const worker = spawnQuipu(['worker', '--port', '0', '--data-dir', away, '--coordinators', url], { env: secret })
    await waitUntil('the worker is up', () => worker.stdout().startsWith('Worker up in '))
    const children = [...processesOf(home).children, ...processesOf(away).children]
    expect(children.filter(isAlive)).toHaveLength(2)

    coordinator.signal('SIGTERM')
    worker.signal('SIGTERM')
    expect(await coordinator.exit).toMatchObject({ code: 0, stderr: '' })
    expect(await worker.exit).toMatchObject({ code: 0, stderr: '' })
    expect(children.filter(isAlive)).toEqual([])
  })

  it.each([
    [['coordinator'], {}, 'quipu: quipu coordinator needs DATABASE_URL\n'],
    [['worker'], {}, 'quipu: quipu worker needs QUIPU_COORDINATORS\n'],
    [['worker', '--coordinators', 'http://x:1'], {}, 'quipu: quipu worker needs QUIPU_SHARED_SECRET\n'],
    [
      ['worker', '--coordinators', 'http://x:1', '--host', '0.0.0.0', '--insecure'],
      secret,
      'quipu: quipu worker needs QUIPU_ADVERTISED_URL: others cannot reach it at 0.0.0.0\n',
    ],
  ])('name the missing setting for %j', async (args, env, stderr) => {
    expect(await spawnQuipu(args, { env }).exit).toEqual({ code: 64, stdout: '', stderr })
  })
})
