import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { TaskStatus } from '../../../src/execution/api/task.ts'
import { waitUntil } from '../../support/quipu-process.ts'
import { openTestWorker, statusHeaders, updateFor, type TestWorker } from '../../support/worker.ts'

const streaming = { streams: true, estimate: { small: false } }

describe('The task resource of a worker', () => {
  let worker: TestWorker
  beforeAll(async () => {
    worker = await openTestWorker({ postWaitMs: 60_000 })
  })
  afterAll(() => worker[Symbol.asyncDispose]())

  const nation = () =>
    updateFor(
      [{ connector: worker.tpch, schema: 'tiny', table: 'nation', columns: ['nationkey', 'name'] }],
      'SELECT nationkey AS c0, name AS c1 FROM "$s0" WHERE nationkey < 3 ORDER BY 1',
      2,
    )
  /** Runs a task that makes several large pages, and returns its id. */
  async function largeTask(): Promise<string> {
    const scan = { connector: worker.tpch, schema: 'tiny', table: 'lineitem', columns: ['orderkey', 'comment'] }
    const update = await updateFor([scan], 'SELECT orderkey AS c0, comment AS c1 FROM "$s0"', 2, streaming)
    const taskId = worker.nextTaskId()
    await worker.run(taskId, update)
    return taskId
  }
  /** The update of a small task that runs for some time. */
  const slow = () =>
    updateFor(
      [{ connector: worker.tpch, schema: 'tiny', table: 'lineitem', columns: ['orderkey'] }],
      'SELECT count(*) AS c0 FROM "$s0" a, (SELECT * FROM "$s0" LIMIT 4000) b WHERE a.orderkey + b.orderkey < 0',
      1,
    )
  const runaway = () =>
    updateFor(
      [{ connector: worker.tpch, schema: 'tiny', table: 'lineitem', columns: ['orderkey'] }],
      'SELECT count(*) AS c0 FROM "$s0" a, "$s0" b WHERE a.orderkey + b.orderkey < 0',
      1,
      { streams: false, estimate: { small: false } },
    )

  it('answers the POST of a small task with its final status and its page', async () => {
    const taskId = worker.nextTaskId()
    const answer = await worker.call('POST', `/v1/task/${taskId}`, { body: await nation(), headers: statusHeaders })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('application/json')
    const status = (await answer.json()) as TaskStatus
    expect(status.state).toBe('FINISHED')
    expect(status.inlinePages!.map(({ token, data }) => [token, JSON.parse(data)])).toEqual([
      [
        0,
        [
          [0, 'ALGERIA'],
          [1, 'ARGENTINA'],
          [2, 'BRAZIL'],
        ],
      ],
    ])
    expect(status.pages[0]!.bytes).toBe(status.inlinePages![0]!.data.length)
  })

  it('answers a repeated POST without another effect', async () => {
    const taskId = worker.nextTaskId()
    const post = async () =>
      (await (
        await worker.call('POST', `/v1/task/${taskId}`, { body: await nation(), headers: statusHeaders })
      ).json()) as TaskStatus
    const first = await post()
    const second = await post()
    expect({ ...second, lastHeartbeat: '' }).toEqual({ ...first, lastHeartbeat: '' })
  })

  it('answers the POST of a long task at once', async () => {
    const taskId = worker.nextTaskId()
    const answer = await worker.call('POST', `/v1/task/${taskId}`, { body: await runaway(), headers: statusHeaders })
    expect(((await answer.json()) as TaskStatus).state).toBe('RUNNING')
    expect((await worker.call('DELETE', `/v1/task/${taskId}`)).status).toBe(200)
  })

  it('serves pages by token, and repeats them on request', async () => {
    const taskId = await largeTask()
    const status = worker.tasks.get(taskId as never)!.status()
    expect(status.pages.length).toBeGreaterThan(1)
    for (const page of [...status.pages, ...status.pages]) {
      const answer = await worker.call('GET', `/v1/task/${taskId}/results/0/${page.token}`)
      expect(answer.status).toBe(200)
      expect(answer.headers.get('x-engine-page-token')).toBe(String(page.token))
      expect(answer.headers.get('x-engine-page-next-token')).toBe(String(page.token + 1))
      expect(answer.headers.get('x-engine-task-instance-id')).toBe(status.instanceId)
      expect(answer.headers.get('x-engine-page-sha256')).toBe(page.sha256)
      const last = page.token === status.pages.length - 1
      expect(answer.headers.get('x-engine-buffer-complete')).toBe(String(last))
      expect((await answer.json()) as unknown[]).toHaveLength(page.rows)
    }
    const beyond = await worker.call('GET', `/v1/task/${taskId}/results/0/${status.pages.length}`)
    expect(beyond.status).toBe(204)
    expect(beyond.headers.get('x-engine-buffer-complete')).toBe('true')
    expect(beyond.headers.get('x-engine-page-next-token')).toBe(String(status.pages.length))
  })

  it('drops acknowledged pages, and no other pages', async () => {
    const taskId = await largeTask()
    const page = (token: number, headers = {}) =>
      worker.call('GET', `/v1/task/${taskId}/results/0/${token}`, { headers })
    expect((await page(1)).status).toBe(200)
    expect((await page(0)).status).toBe(200)
    expect((await page(1, { 'x-engine-acknowledge': '1' })).status).toBe(200)
    expect((await page(0)).status).toBe(410)
    expect((await page(1)).status).toBe(200)
    expect((await worker.call('DELETE', `/v1/task/${taskId}/results/0?before=2`)).status).toBe(204)
    expect((await page(1)).status).toBe(410)
    // An acknowledged page stays acknowledged.
    expect((await worker.call('DELETE', `/v1/task/${taskId}/results/0?before=1`)).status).toBe(204)
    expect((await page(1)).status).toBe(410)
    const { outputBuffers } = (await (await worker.call('GET', `/v1/task/${taskId}`)).json()) as {
      outputBuffers: { pagesAdded: number; buffers: { pagesSent: number; bufferedPages: number }[] }
    }
    expect(outputBuffers.buffers[0]!.pagesSent).toBe(2)
    expect(outputBuffers.buffers[0]!.bufferedPages).toBe(outputBuffers.pagesAdded - 2)
    expect((await worker.call('DELETE', `/v1/task/${taskId}/results/0`)).status).toBe(204)
    expect((await page(2)).status).toBe(410)
  })

  it('waits up to X-Engine-Max-Wait for a page that is not ready, or until a cancel', async () => {
    const taskId = worker.nextTaskId()
    const early = worker.call('GET', `/v1/task/${taskId}/results/0/0`)
    expect((await early).status).toBe(404)
    await worker.call('POST', `/v1/task/${taskId}`, { body: await runaway() })
    const none = await worker.call('GET', `/v1/task/${taskId}/results/0/0`, {
      headers: { 'x-engine-max-wait': '30ms' },
    })
    expect(none.status).toBe(204)
    expect(none.headers.get('x-engine-buffer-complete')).toBe('false')
    // A cancel ends the wait.
    const waiting = worker.call('GET', `/v1/task/${taskId}/results/0/0`, { headers: { 'x-engine-max-wait': '20s' } })
    await worker.call('GET', '/v1/task')
    await worker.call('DELETE', `/v1/task/${taskId}?abort=true`)
    expect([204, 404]).toContain((await waiting).status)
  })

  it('cancels or aborts a task on DELETE, and shows its final state', async () => {
    for (const [query, state] of [
      ['', 'CANCELED'],
      ['?abort=true', 'ABORTED'],
    ] as const) {
      const taskId = worker.nextTaskId()
      await worker.call('POST', `/v1/task/${taskId}`, { body: await runaway() })
      const answer = await worker.call('DELETE', `/v1/task/${taskId}${query}`)
      expect(answer.status).toBe(200)
      expect(await answer.json()).toMatchObject({
        taskId,
        state,
        outputBuffers: { state: 'FINISHED', buffers: [{ finished: true }] },
        stats: { pipelines: [], runningDrivers: 0 },
      })
      expect(await (await worker.call('GET', `/v1/task/${taskId}`)).json()).toMatchObject({ state })
      expect((await worker.call('DELETE', `/v1/task/${taskId}`)).status).toBe(200)
      expect((await worker.call('POST', `/v1/task/${taskId}`, { body: await runaway() })).status).toBe(404)
      expect((await worker.call('GET', `/v1/task/${taskId}/results/0/0`)).status).toBe(404)
    }
  })

  it('deletes several tasks with one request, and ignores unknown tasks', async () => {
    const taskIds = [worker.nextTaskId(), worker.nextTaskId()]
    for (const taskId of taskIds) await worker.call('POST', `/v1/task/${taskId}`, { body: await nation() })
    const unknown = worker.nextTaskId()
    const answer = await worker.call('DELETE', '/v1/task', { body: { taskIds: [...taskIds, unknown] } })
    expect([answer.status, await answer.text()]).toEqual([204, ''])
    for (const taskId of taskIds) expect((await worker.call('GET', `/v1/task/${taskId}/results/0/0`)).status).toBe(404)
    expect((await worker.call('DELETE', '/v1/task', { body: { taskIds: ['nonsense'] } })).status).toBe(404)
    expect((await worker.call('DELETE', '/v1/task', { body: { tasks: [] } })).status).toBe(400)
  })

  it('reports the failure of a task', async () => {
    const taskId = worker.nextTaskId()
    const endless = await updateFor([], 'SELECT count(*) AS c0 FROM range(10000000) a, range(10000000) b', 1)
    const update = { ...endless, remainingMillis: 0 }
    const info = await (await worker.call('POST', `/v1/task/${taskId}`, { body: update })).json()
    expect(info).toMatchObject({
      state: 'FAILED',
      outputBuffers: { state: 'FAILED' },
      failures: [
        {
          type: 'EXCEEDED_TIME_LIMIT',
          errorCode: { code: 131075, name: 'EXCEEDED_TIME_LIMIT', type: 'INSUFFICIENT_RESOURCES' },
        },
      ],
    })
    const page = await worker.call('GET', `/v1/task/${taskId}/results/0/0`)
    expect([page.status, page.headers.get('x-engine-task-failed')]).toEqual([204, 'true'])
  })

  it('reports changes of all tasks by long polling, each page once', async () => {
    const all = await worker.call('GET', '/v1/task?since=')
    const version = all.headers.get('x-engine-task-version')!
    const known = ((await all.json()) as TaskStatus[]).length
    expect(known).toBeGreaterThan(0)
    const nothing = await worker.call('GET', `/v1/task?since=${version}`, { headers: { 'x-engine-max-wait': '20ms' } })
    expect(await nothing.json()).toEqual([])
    expect(nothing.headers.get('x-engine-task-version')).toBe(version)

    const waiting = worker.call('GET', `/v1/task?since=${version}`, { headers: { 'x-engine-max-wait': '20s' } })
    const taskId = await largeTask()
    const tokens: number[] = []
    let since = version
    let answer = await waiting
    for (let state = ''; state !== 'FINISHED';) {
      since = answer.headers.get('x-engine-task-version')!
      for (const status of (await answer.json()) as TaskStatus[]) {
        expect(status.taskId).toBe(taskId)
        tokens.push(...status.pages.map(({ token }) => token))
        state = status.state
      }
      answer = await worker.call('GET', `/v1/task?since=${since}`, { headers: { 'x-engine-max-wait': '50ms' } })
    }
    const count = worker.tasks.get(taskId as never)!.status().pages.length
    expect(tokens).toEqual(Array.from({ length: count }, (_, token) => token))
  })

  it('sends small pages inline with the changes of a task, and no large pages', async () => {
    const first = await worker.call('GET', '/v1/task?since=')
    let since = first.headers.get('x-engine-task-version')!
    const scan = { connector: worker.tpch, schema: 'tiny', table: 'nation', columns: ['nationkey'] }
    const small = await updateFor([scan], 'SELECT count(*) AS c0 FROM "$s0"', 1, { estimate: { small: false } })
    const taskId = worker.nextTaskId()
    await worker.run(taskId, small)
    const large = await largeTask()
    const reported = new Map<string, TaskStatus>()
    while (!reported.has(taskId) || !reported.has(large)) {
      const answer = await worker.call('GET', `/v1/task?since=${since}`, { headers: { 'x-engine-max-wait': '50ms' } })
      since = answer.headers.get('x-engine-task-version')!
      for (const status of (await answer.json()) as TaskStatus[])
        if (status.pages.length > 0) reported.set(status.taskId, status)
    }
    expect(reported.get(taskId)!.inlinePages).toEqual([{ token: 0, data: '[[25]]' }])
    expect(reported.get(large)!.inlinePages).toBeUndefined()
    // A caller that starts afresh gets no inline pages: it asks for the pages that it needs.
    const all = (await (await worker.call('GET', '/v1/task?since=')).json()) as TaskStatus[]
    expect(all.filter(({ inlinePages }) => inlinePages)).toEqual([])
    // The pages stay, because no caller has acknowledged them.
    expect((await worker.call('GET', `/v1/task/${taskId}/results/0/0`)).status).toBe(200)
  })

  // The POST of a canceled statement may arrive late, or its body may be long.
  it.each(['one', 'many'])(
    'answers 404 to the POST of a task that was deleted before, by a DELETE of %s',
    async (deleted) => {
      const taskId = worker.nextTaskId()
      if (deleted === 'one') await worker.call('DELETE', `/v1/task/${taskId}?abort=true`)
      else await worker.call('DELETE', '/v1/task', { body: { taskIds: [taskId] } })
      expect((await worker.call('POST', `/v1/task/${taskId}`, { body: await nation() })).status).toBe(404)
      expect(worker.tasks.get(taskId)).toBeUndefined()
      expect((await worker.call('GET', `/v1/task/${taskId}`)).status).toBe(404)
    },
  )

  it('reports no change of a task whose POST was answered with the final status', async () => {
    const all = await worker.call('GET', '/v1/task?since=')
    const version = all.headers.get('x-engine-task-version')!
    const taskId = worker.nextTaskId()
    const posted = { body: await nation(), headers: statusHeaders }
    const answer = await worker.call('POST', `/v1/task/${taskId}`, posted)
    const { state } = (await answer.json()) as TaskStatus
    const reported = (await (await worker.call('GET', `/v1/task?since=${version}`)).json()) as TaskStatus[]
    // On a slow machine the task may end after the answer. Then its end is a change.
    expect(reported.map((status) => status.taskId)).toEqual(state === 'FINISHED' ? [] : [taskId])
    await worker.call('DELETE', '/v1/task', { body: { taskIds: [taskId] } })
    const after = (await (await worker.call('GET', `/v1/task?since=${version}`)).json()) as TaskStatus[]
    expect(after.map((status) => status.taskId)).toEqual(state === 'FINISHED' ? [] : [taskId])
    const every = (await (await worker.call('GET', '/v1/task?since=')).json()) as TaskStatus[]
    expect(every.find((status) => status.taskId === taskId)).toMatchObject({ deleted: true })
  })

  it('reports no change of a small task that runs while its POST still waits for the end', async () => {
    const all = await worker.call('GET', '/v1/task?since=')
    const version = all.headers.get('x-engine-task-version')!
    const taskId = worker.nextTaskId()
    const posted = worker.call('POST', `/v1/task/${taskId}`, { body: await slow(), headers: statusHeaders })
    await waitUntil('it runs', () => worker.tasks.get(taskId as never)?.state() === 'RUNNING')
    const nothing = await worker.call('GET', `/v1/task?since=${version}`, { headers: { 'x-engine-max-wait': '1ms' } })
    expect(await nothing.json()).toEqual([])
    expect(((await (await posted).json()) as TaskStatus).state).toBe('FINISHED')
  })

  it('reports the end of a small task to a caller that listed the task before its POST was answered', async () => {
    const taskId = worker.nextTaskId()
    const posted = worker.call('POST', `/v1/task/${taskId}`, { body: await slow(), headers: statusHeaders })
    await waitUntil('it is there', async () => (await worker.call('GET', `/v1/task/${taskId}`)).status === 200)
    const all = await worker.call('GET', '/v1/task?since=')
    const version = all.headers.get('x-engine-task-version')!
    expect(((await (await posted).json()) as TaskStatus).state).toBe('FINISHED')
    const reported = (await (await worker.call('GET', `/v1/task?since=${version}`)).json()) as TaskStatus[]
    expect(reported).toMatchObject([{ taskId, state: 'FINISHED', pages: [{ token: 0 }] }])
    expect((await worker.call('GET', `/v1/task/${taskId}/results/0/0`)).status).toBe(200)
  })

  it('answers 409 to a lower epoch without any effect, also after a restart', async () => {
    const taskId = worker.nextTaskId()
    expect((await worker.call('GET', '/v1/task', { epoch: 7 })).status).toBe(200)
    const body = await nation()
    const stale = await worker.call('POST', `/v1/task/${taskId}`, { body, epoch: 6 })
    expect(stale.status).toBe(409)
    expect(worker.tasks.get(taskId)).toBeUndefined()
    expect((await worker.call('POST', `/v1/task/${taskId}`, { body, epoch: 7 })).status).toBe(200)
    const before = await (await worker.call('GET', `/v1/task/${taskId}`, { epoch: 7 })).json()
    for (const [method, path, more] of [
      ['POST', `/v1/task/${taskId}`, { body }],
      ['DELETE', `/v1/task/${taskId}`],
      ['DELETE', `/v1/task/${taskId}?abort=true`],
      ['DELETE', '/v1/task', { body: { taskIds: [taskId] } }],
      ['DELETE', `/v1/task/${taskId}/results/0`],
      ['DELETE', `/v1/task/${taskId}/results/0?before=1`],
      ['GET', `/v1/task/${taskId}/results/0/1`, { headers: { 'x-engine-acknowledge': '1' } }],
      ['GET', `/v1/task/${taskId}/results/0/0`],
      ['GET', `/v1/task/${taskId}`],
      ['GET', '/v1/task?since='],
    ] as const) {
      expect([path, (await worker.call(method, path, { ...more, epoch: 6 })).status]).toEqual([path, 409])
    }
    const after = await (await worker.call('GET', `/v1/task/${taskId}`, { epoch: 7 })).json()
    const heard = { lastHeartbeat: expect.any(String) as unknown }
    expect(after).toEqual({ ...(before as object), ...heard })
    expect((await worker.call('GET', `/v1/task/${taskId}/results/0/0`, { epoch: 7 })).status).toBe(200)
    await using other = await openTestWorker()
    await other.call('GET', '/v1/task', { epoch: 9 })
    await other.restart()
    expect((await other.call('GET', '/v1/task', { epoch: 8 })).status).toBe(409)
  })

  it('answers 401 without the cluster secret, except to reads of tasks when these are open', async () => {
    await using closed = await openTestWorker({ openReads: false })
    const taskId = worker.nextTaskId()
    for (const [method, path] of [
      ['POST', `/v1/task/${taskId}`],
      ['DELETE', `/v1/task/${taskId}`],
      ['GET', `/v1/task/${taskId}/results/0/0`],
      ['DELETE', `/v1/task/${taskId}/results/0`],
    ] as const) {
      expect((await worker.call(method, path, { anonymous: true, epoch: 7 })).status).toBe(401)
      const wrong = { authorization: 'Bearer wrong' }
      expect((await worker.call(method, path, { anonymous: true, epoch: 7, headers: wrong })).status).toBe(401)
    }
    expect((await worker.call('GET', '/v1/task', { anonymous: true, epoch: 7 })).status).toBe(200)
    expect((await worker.call('GET', `/v1/task/${taskId}`, { anonymous: true, epoch: 7 })).status).toBe(404)
    expect((await closed.call('GET', '/v1/task', { anonymous: true })).status).toBe(401)
    expect((await closed.call('GET', `/v1/task/${taskId}`, { anonymous: true })).status).toBe(401)
    expect((await closed.call('GET', '/v1/task')).status).toBe(200)
  })

  it.each([
    ['GET', '/v1/task/nonsense', 404],
    ['GET', '/v1/task/20260101_000000_00000_00001.1.99', 404],
    ['DELETE', '/v1/task/20260101_000000_00000_00001.1.99', 404],
    ['GET', '/v1/task/20260101_000000_00000_00001.1.0/other', 404],
    ['GET', '/v1/task/20260101_000000_00000_00001.1.0/results/1/0', 404],
    ['GET', '/v1/task/20260101_000000_00000_00001.1.0/results/0/x', 400],
    ['GET', '/v1/task/20260101_000000_00000_00001.1.0/results/0/0/more', 404],
    ['PUT', '/v1/task/20260101_000000_00000_00001.1.0', 405],
    ['POST', '/v1/task', 405],
    ['GET', '/v1/task?since=soon', 400],
    ['GET', '/v1/task/..%2f..%2fetc', 404],
    ['GET', '/v1/tasks', 404],
  ])('answers %s %s with %i', async (method, path, status) => {
    expect((await worker.call(method, path, { epoch: 7 })).status).toBe(status)
  })

  it('answers 4xx to bodies that are not an update', async () => {
    const path = `/v1/task/${worker.nextTaskId()}`
    const post = async (body: string, headers = {}) => {
      const answer = await worker.call('POST', path, { body, epoch: 7, headers })
      return [answer.status, answer.headers.get('content-type')]
    }
    const problem = 'application/problem+json'
    expect(await post('{')).toEqual([400, problem])
    expect(await post('')).toEqual([400, problem])
    expect(await post('{"fragment": 1}')).toEqual([400, problem])
    expect(await post('{}', { accept: 'text/plain' })).toEqual([400, 'text/plain; charset=utf-8'])
    const large = await worker.call('POST', path, { body: `"${'x'.repeat(16 * 1024 * 1024)}"`, epoch: 7 })
    expect(large.status).toBe(413)
    expect((await worker.call('POST', path, { body: '{}', epoch: -1 })).status).toBe(400)
    expect(await worker.call('GET', '/v1/task', { epoch: 7 }).then(({ status }) => status)).toBe(200)
  })
})
