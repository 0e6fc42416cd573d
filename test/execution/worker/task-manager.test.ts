import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { announcementSchema, type Announcement } from '../../../src/execution/api/task.ts'
import { createAnnouncer } from '../../../src/execution/worker/announcer.ts'
import { nodeIdOf } from '../../../src/execution/worker/node-id.ts'
import type { Clock } from '../../../src/shared/clock.ts'
import { openTestWorker, updateFor, type TestWorker } from '../../support/worker.ts'
import { parseNodeId } from '../../../src/shared/ids.ts'
import { createServerTrust } from '../../../src/shared/server-trust.ts'

const nation = (worker: TestWorker) =>
  updateFor(
    [{ connector: worker.tpch, schema: 'tiny', table: 'nation', columns: ['name'] }],
    'SELECT name AS c0 FROM "$s0"',
    1,
  )
/** A task that runs for minutes unless it is stopped. */
const runaway = (worker: TestWorker, small: boolean) =>
  updateFor(
    [{ connector: worker.tpch, schema: 'tiny', table: 'lineitem', columns: ['orderkey', 'comment'] }],
    'SELECT count(*) AS c0 FROM "$s0" a, "$s0" b WHERE a.orderkey + length(b.comment) < 0',
    1,
    { estimate: { small } },
  )
const busy = (worker: TestWorker): boolean => worker.engines.pool.children().some(({ state }) => state === 'busy')

/** A clock that the test advances. */
function handClock(): Clock & { advance(millis: number): void } {
  let passed = 0
  const start = Date.now()
  return { now: () => start + passed, monotonicMs: () => passed, advance: (millis) => void (passed += millis) }
}

describe('The task manager', () => {
  it.each([true, false])(
    'stops a runaway task together with its statement in the engine (small: %s)',
    async (small) => {
      await using worker = await openTestWorker()
      const task = worker.tasks.update(worker.nextTaskId(), await runaway(worker, small))
      await expect.poll(() => busy(worker)).toBe(true)
      task.cancel('ABORTED')
      expect(task.state()).toBe('ABORTED')
      // The kill follows the interrupt after 150 ms; the rest of the timeout is for a busy machine.
      await expect.poll(() => busy(worker), { interval: 5, timeout: 120_000 }).toBe(false)
      expect(task.status().stats.runningDrivers).toBe(0)
      const taskId = worker.nextTaskId()
      expect((await worker.run(taskId, await nation(worker))).state).toBe('FINISHED')
    },
  )

  it('drops all tasks after ten minutes without a request of a coordinator', async () => {
    const clock = handClock()
    await using worker = await openTestWorker({ clock })
    const taskId = worker.nextTaskId()
    await worker.run(taskId, await nation(worker))
    const running = worker.tasks.update(worker.nextTaskId(), await runaway(worker, false))
    clock.advance(599_000)
    await worker.call('GET', '/v1/task')
    clock.advance(599_000)
    await new Promise((resolve) => setTimeout(resolve, 1_100))
    expect(worker.tasks.usage().tasks).toBe(2)
    clock.advance(1_500)
    await expect.poll(() => worker.tasks.usage(), { timeout: 120_000 }).toEqual({ tasks: 0, running: 0, pageBytes: 0 })
    expect(await running.ended).toBe('ABORTED')
    expect(worker.events.find(({ type }) => type === 'coordinatorSilent')).toMatchObject({ tasksDropped: 2 })
    expect(worker.tasks.deleted(taskId)).toMatchObject({ state: 'FINISHED', bufferState: 'FINISHED' })
  })

  it('drops all tasks earlier if forgetAfterMs is shorter', async () => {
    const clock = handClock()
    await using worker = await openTestWorker({ clock, forgetAfterMs: 5_000 })
    await worker.run(worker.nextTaskId(), await nation(worker))
    clock.advance(5_001)
    await expect.poll(() => worker.tasks.usage().tasks).toBe(0)
  })

  it('lists a deleted task for fifteen minutes', async () => {
    const clock = handClock()
    await using worker = await openTestWorker({ clock })
    const taskId = worker.nextTaskId()
    await worker.run(taskId, await nation(worker))
    await worker.tasks.delete(taskId, 'CANCELED')
    const { version } = worker.tasks.deleted(taskId)!
    expect(worker.tasks.statuses(version - 1).map((status) => status.taskId)).toEqual([taskId])
    clock.advance(899_000)
    await new Promise((resolve) => setTimeout(resolve, 1_100))
    expect(worker.tasks.statuses().map((status) => status.taskId)).toEqual([taskId])
    clock.advance(2_000)
    await expect.poll(() => worker.tasks.statuses(), { timeout: 120_000 }).toEqual([])
  })

  it('refuses a task that was deleted before its creation, for fifteen minutes and for the last 2,000 of them', async () => {
    const clock = handClock()
    await using worker = await openTestWorker({ clock })
    const [early, late] = [worker.nextTaskId(), worker.nextTaskId()]
    const update = await nation(worker)
    const isMade = (taskId: typeof early): boolean => {
      try {
        return worker.tasks.update(taskId, update).taskId === taskId
      } catch {
        return false
      }
    }
    await worker.tasks.delete(early, 'ABORTED')
    for (let count = 0; count < 1999; count++) await worker.tasks.delete(worker.nextTaskId(), 'ABORTED')
    expect(isMade(early)).toBe(false)
    await worker.tasks.delete(late, 'ABORTED')
    await expect.poll(() => isMade(early), { timeout: 120_000 }).toBe(true)
    expect(isMade(late)).toBe(false)
    clock.advance(901_000)
    await expect.poll(() => isMade(late), { timeout: 120_000 }).toBe(true)
  })

  it('refuses new tasks while it drains, and finishes the existing ones', async () => {
    await using worker = await openTestWorker()
    const taskId = worker.nextTaskId()
    const update = await nation(worker)
    const task = worker.tasks.update(taskId, update)
    worker.tasks.drain()
    expect(() => worker.tasks.update(worker.nextTaskId(), update)).toThrow(/shutting down/)
    const answer = await worker.call('POST', `/v1/task/${worker.nextTaskId()}`, { body: update })
    expect(answer.status).toBe(503)
    expect(worker.tasks.update(taskId, update)).toBe(task)
    expect(await task.ended).toBe('FINISHED')
  })

  it('emits telemetry events for tasks, batches and pages', async () => {
    await using worker = await openTestWorker()
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const taskId = worker.nextTaskId()
    await worker.run(taskId, { ...(await nation(worker)), traceparent, profile: true })
    expect(worker.events.map(({ type }) => type)).toEqual(['taskCreated', 'pageListed', 'batchEnded', 'taskEnded'])
    expect(worker.events.find(({ type }) => type === 'batchEnded')).toMatchObject({
      taskId,
      batch: 0,
      traceparent,
      figures: { outputPositions: 25, rawInputPositions: 25 },
    })
  })
})

describe('The announcer', () => {
  it('announces the worker to every coordinator repeatedly, with the secret and the highest epoch', async () => {
    const heard: {
      method: string | undefined
      url: string | undefined
      bearer: string | undefined
      body: Announcement
    }[] = []
    const server = createServer((request, response) => {
      const parts: Buffer[] = []
      request.on('data', (part: Buffer) => parts.push(part))
      request.on('end', () => {
        const body = announcementSchema.parse(JSON.parse(Buffer.concat(parts).toString()))
        heard.push({ method: request.method, url: request.url, bearer: request.headers.authorization, body })
        response.writeHead(202).end()
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const announcement = {
      nodeId: parseNodeId('w'),
      url: 'http://w:1',
      version: '1',
      cores: 2,
      memoryBytes: 1,
      epochSeen: 3,
      uptimeMillis: 4,
    }
    const failed: string[] = []
    const announcer = createAnnouncer({
      trust: createServerTrust({}),
      coordinators: [base, 'http://127.0.0.1:1'],
      bearer: 'key',
      everyMs: 100,
      announcement: () => announcement,
      onEvent: (event) => {
        if (event.type === 'announcementFailed') failed.push(event.url)
      },
    })
    await announcer.start()
    await expect.poll(() => heard.length).toBeGreaterThan(2)
    await announcer.stop()
    server.closeAllConnections()
    server.close()
    expect(heard[0]).toEqual({ method: 'PUT', url: '/v1/announcement', bearer: 'Bearer key', body: announcement })
    expect(failed).toContain('http://127.0.0.1:1')
  })

  it('uses one stable node id per worker folder', async () => {
    await using worker = await openTestWorker()
    await using other = await openTestWorker()
    const id = nodeIdOf(worker.folder)
    expect(id).toMatch(/^worker-[0-9a-f]{10}$/)
    expect(nodeIdOf(worker.folder)).toBe(id)
    expect(nodeIdOf(other.folder)).not.toBe(id)
  })
})
