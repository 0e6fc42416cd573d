import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { internalBearer } from '../../src/security/cluster-secret.ts'
import { createDatabase, type TestDatabase } from '../support/postgres.ts'
import { spawnQuipu, temporaryFolder, waitUntil, type QuipuProcess } from '../support/quipu-process.ts'
import {
  recordedProtocol,
  servePeer,
  startRecordedWorker,
  statusesOf,
  type Peer,
} from '../support/recorded-protocol.ts'
import { run } from '../support/statement-client.ts'

const { secret, statements, exchanges } = recordedProtocol
const bearer = internalBearer(secret)
const env = { QUIPU_SHARED_SECRET: secret, QUIPU_LOG_LEVEL: 'error' }
let folder: ReturnType<typeof temporaryFolder>
let database: TestDatabase
beforeAll(async () => {
  folder = temporaryFolder()
  database = await createDatabase()
})
afterAll(async () => {
  await folder.remove()
  await database.drop()
})

const end = async (one: QuipuProcess): Promise<void> => {
  one.signal('SIGTERM')
  expect((await one.exit).code).toBe(0)
}

it('a coordinator works with a worker of the previous version', { timeout: 240_000 }, async () => {
  const data = join(folder.path, 'coordinator')
  const coordinator = spawnQuipu(['coordinator', '--port', '0', '--data-dir', data], {
    env: { ...env, DATABASE_URL: database.url },
  })
  const url = await coordinator.url
  const worker = await startRecordedWorker(url, bearer)
  try {
    await waitUntil(
      'the worker is known',
      async () => ((await (await fetch(`${url}/v1/node`)).json()) as unknown[]).length > 0,
      60_000,
    )
    const [rows, error] = statements
    expect((await run(url, rows!.sql)).rows).toEqual(rows!.rows)
    const failed = await run(url, error!.sql)
    expect(failed.error?.errorName).toBe(error!.error)
    expect(worker.refused).toEqual([])
  } finally {
    await worker.close()
  }
  await end(coordinator)
})

it('a worker works with a coordinator of the previous version', { timeout: 240_000 }, async () => {
  const announced: { url: string }[] = []
  const coordinator: Peer = await servePeer((request, text, response) => {
    const known = exchanges.find(({ path }) => path === request.url)
    if (known && request.headers.authorization === `Bearer ${bearer}`) announced.push(JSON.parse(text))
    response.writeHead(known?.status ?? 404, known ? { ...known.answerHeaders } : {}).end()
  })
  const data = join(folder.path, 'worker')
  const worker = spawnQuipu(['worker', '--port', '0', '--data-dir', data, '--coordinators', coordinator.url], { env })
  await waitUntil('the worker has announced itself', () => announced.length > 0, 60_000)
  const { body: recordedAnnouncement } = exchanges.find(({ path }) => path === '/v1/announcement')!
  expectSameShape(recordedAnnouncement, announced[0], 'announcement')
  const send = (method: string, path: string, headers: Readonly<Record<string, string>>, body: unknown) =>
    fetch(`${announced[0]!.url}${path}`, {
      method,
      headers: { ...headers, authorization: `Bearer ${bearer}` },
      ...(body === null ? {} : { body: JSON.stringify(body) }),
    })
  const newsRequest = exchanges.find(({ path }) => path === '/v1/task?since=')!
  for (const { method, path, headers, body, status, answer, answerHeaders } of exchanges) {
    if (!path.startsWith('/v1/task/') && method !== 'DELETE') continue
    const given = await send(method, path, headers, body)
    expect(given.status, `${method} ${path}`).toBe(status)
    if (method === 'POST') {
      expectSameShape(answer, await given.json(), 'answer of POST')
      const taskId = path.split('/').at(-1)!
      const last = statusesOf(taskId).at(-1)!
      let now: { taskId: string; state: string } | undefined
      await waitUntil(
        `${taskId} is ${last.state}`,
        async () => {
          const news = await send('GET', newsRequest.path, newsRequest.headers, null)
          expect(news.headers.get('x-engine-task-version')).toMatch(/^\d+$/)
          now = ((await news.json()) as { taskId: string; state: string }[]).find((one) => one.taskId === taskId)
          return now?.state === last.state
        },
        120_000,
      )
      expectSameShape(last, now, 'status')
    } else if (method === 'GET') {
      // DuckDB gives these rows in its own order, so the statement sorts them.
      const text = await given.text()
      expect(JSON.parse(text)).toEqual(answer)
      for (const name of Object.keys(answerHeaders).filter((one) => one.startsWith('x-engine')))
        expect(given.headers.has(name), name).toBe(true)
      // White space between rows may change: the hash covers the bytes of this answer.
      const sha256 = createHash('sha256').update(text).digest('hex')
      expect(given.headers.get('x-engine-page-sha256')).toBe(sha256)
    }
  }
  await end(worker)
  await coordinator.close()
})

/** Expects that every recorded field still exists with its type; there may be new fields. */
function expectSameShape(recorded: unknown, now: unknown, path: string): void {
  expect(Array.isArray(now) ? 'array' : typeof now, path).toBe(Array.isArray(recorded) ? 'array' : typeof recorded)
  if (Array.isArray(recorded)) {
    if (recorded.length > 0) expectSameShape(recorded[0], (now as unknown[])[0], `${path}[0]`)
  } else if (typeof recorded === 'object' && recorded !== null) {
    for (const [key, value] of Object.entries(recorded))
      expectSameShape(value, (now as Record<string, unknown>)[key], `${path}.${key}`)
  }
}

const COMMIT = 'f0ab5d1'
const repository = new URL('../..', import.meta.url).pathname
const execute = promisify(execFile)
const history = await execute('git', ['cat-file', '-e', `${COMMIT}^{commit}`], { cwd: repository }).then(
  () => true,
  () => false,
)
const real = history && process.env['QUIPU_PREVIOUS_VERSION'] === '1'
if (!real)
  process.stderr.write(
    `The version before (${COMMIT}) was NOT run for real, only replayed: QUIPU_PREVIOUS_VERSION=1 does it where git has its history\n`,
  )

describe.runIf(real)('Processes of both versions', () => {
  const previous = (): string => join(folder.path, 'previous')
  beforeAll(async () => {
    mkdirSync(previous())
    await execute('bash', ['-c', `git archive ${COMMIT} | tar x -C "${previous()}"`], { cwd: repository })
    symlinkSync(join(repository, 'node_modules'), join(previous(), 'node_modules'))
    await execute('npx', ['tsc', '-p', '.'], { cwd: previous() })
  }, 240_000)

  it.each([
    ['a coordinator of this version', false],
    ['a worker of this version', true],
  ])(
    'run statements together: %s with the other process of the previous version',
    { timeout: 240_000 },
    async (_what, older) => {
      const own = await createDatabase()
      const name = older ? 'old' : 'new'
      const program = (old: boolean) => (old ? { cwd: previous(), program: join(previous(), 'dist/cli/quipu.js') } : {})
      const coordinator = spawnQuipu(['coordinator', '--port', '0', '--data-dir', join(folder.path, `c-${name}`)], {
        env: { ...env, DATABASE_URL: own.url },
        ...program(older),
      })
      const url = await coordinator.url
      const data = join(folder.path, `w-${name}`)
      const worker = spawnQuipu(['worker', '--port', '0', '--data-dir', data, '--coordinators', url], {
        env,
        ...program(!older),
      })
      await waitUntil('the worker is up', () => worker.stdout().startsWith('Worker up in '), 60_000)
      const [rows, error] = statements
      expect((await run(url, rows!.sql)).rows).toEqual(rows!.rows)
      expect((await run(url, 'SELECT count(*) FROM tpch.tiny.lineitem')).rows).toEqual([[60_175]])
      expect((await run(url, error!.sql)).error?.errorName).toBe(error!.error)
      await end(worker)
      await end(coordinator)
      await own.drop()
    },
  )
})
