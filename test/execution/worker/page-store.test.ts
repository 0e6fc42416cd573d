import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { DiskSpace } from '../../../src/execution/worker/disk-space.ts'
import { taskStatusJson, type TaskStatus } from '../../../src/execution/api/task.ts'
import { splitTaskId, type TaskId } from '../../../src/shared/ids.ts'
import { openTestWorker, updateFor, type TestWorker, type TestWorkerOptions } from '../../support/worker.ts'

const GB = 1024 ** 3
const streaming = { streams: true, estimate: { small: false } }

/** Two columns of lineitem: about 2 MB of pages. */
const lineitem = (worker: TestWorker) =>
  updateFor(
    [{ connector: worker.tpch, schema: 'tiny', table: 'lineitem', columns: ['orderkey', 'comment'] }],
    'SELECT orderkey AS c0, comment AS c1 FROM "$s0"',
    2,
    streaming,
  )

function pageFiles(worker: TestWorker, taskId: TaskId): string[] {
  const { queryId, stage, task } = splitTaskId(taskId)!
  const folder = join(worker.folder, 'pages', queryId, `${stage}.${task}`)
  return existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => name !== 'index.jsonl')
        .sort()
    : []
}

async function postTask(worker: TestWorker, taskId: TaskId, estimate: { small: boolean }): Promise<TaskStatus> {
  const update = await updateFor([], 'SELECT range AS c0 FROM range(2)', 1, { streams: false, estimate })
  const answer = await worker.call('POST', `/v1/task/${taskId}`, { body: update, headers: { accept: taskStatusJson } })
  expect(answer.status).toBe(200)
  return (await answer.json()) as TaskStatus
}

describe('The page store', () => {
  it('keeps one file per page below the folder of the worker', async () => {
    await using worker = await openTestWorker()
    const taskId = worker.nextTaskId()
    const { pages } = await worker.run(taskId, await lineitem(worker))
    expect(pages.length).toBeGreaterThan(1)
    expect(pageFiles(worker, taskId)).toEqual(pages.map(({ token }) => `${token}.json`))
    await worker.tasks.get(taskId)!.acknowledge(1)
    expect(pageFiles(worker, taskId)).toEqual(pages.slice(1).map(({ token }) => `${token}.json`))
    await worker.tasks.delete(taskId, 'CANCELED')
    expect(readdirSync(join(worker.folder, 'pages'))).toEqual([])
    expect(worker.tasks.usage()).toEqual({ tasks: 0, running: 0, pageBytes: 0 })
  })

  it('keeps no file for a task whose answer contains the whole result', async () => {
    await using worker = await openTestWorker({ postWaitMs: 60_000 })
    const taskId = worker.nextTaskId()
    const answer = await postTask(worker, taskId, { small: true })
    expect(answer).toMatchObject({ state: 'FINISHED', inlinePages: [{ token: 0, data: '[[0],\n[1]]' }] })
    expect(readdirSync(join(worker.folder, 'pages'))).toEqual([])
    expect(worker.tasks.get(taskId)!.status()).toMatchObject({
      bufferState: 'FINISHED',
      pagesSent: 1,
      bufferedPages: 0,
    })
    // A caller that did not receive the answer can ask again.
    expect(await postTask(worker, taskId, { small: true })).toMatchObject({ inlinePages: answer.inlinePages })
    expect((await worker.call('GET', `/v1/task/${taskId}/results/0/0`)).status).toBe(200)
    await worker.tasks.get(taskId)!.acknowledge(1)
    expect(worker.tasks.usage().pageBytes).toBe(0)
    await worker.tasks.delete(taskId, 'CANCELED')
    expect(worker.tasks.usage()).toEqual({ tasks: 0, running: 0, pageBytes: 0 })
  })

  it('keeps the page of a task that is answered before its end, also after a restart', async () => {
    await using worker = await openTestWorker()
    const taskId = worker.nextTaskId()
    // The answer does not wait for the end of a task that is not estimated as small.
    const answer = await postTask(worker, taskId, { small: false })
    expect(answer.inlinePages).toBeUndefined()
    await worker.tasks.get(taskId)!.ended
    const { pages } = worker.tasks.get(taskId)!.status()
    expect(pages).toHaveLength(1)
    expect(pageFiles(worker, taskId)).toEqual(['0.json'])
    const tasks = await worker.restart()
    expect(tasks.get(taskId)!.status()).toMatchObject({ state: 'FINISHED', pages })
    expect(JSON.parse((await tasks.get(taskId)!.page(0))!.bytes.toString())).toEqual([[0], [1]])
  })

  it.each([
    ['2 GB', { freeBytes: 2 * GB - 1, totalBytes: 10 * GB }, { freeBytes: 2 * GB, totalBytes: 10 * GB }],
    ['5 %', { freeBytes: 4.9 * GB, totalBytes: 100 * GB }, { freeBytes: 5 * GB, totalBytes: 100 * GB }],
  ])('accepts no page below %s of free disk space', async (_, below, above) => {
    let space: DiskSpace = below
    const options: TestWorkerOptions = { diskSpace: () => Promise.resolve(space) }
    await using worker = await openTestWorker(options)
    const failed = await worker.run(worker.nextTaskId(), await lineitem(worker))
    expect(failed).toMatchObject({ state: 'FAILED', pages: [], failure: { errorName: 'OUT_OF_SPILL_SPACE' } })
    expect(worker.tasks.usage().pageBytes).toBe(0)
    space = above
    expect((await worker.run(worker.nextTaskId(), await lineitem(worker))).state).toBe('FINISHED')
  })

  it('blocks the engine while a query has too many pages, and continues as pages are acknowledged', async () => {
    await using worker = await openTestWorker({ limits: { pageBytes: 64 * 1024, queryBytes: 256 * 1024 } })
    const taskId = worker.nextTaskId()
    const task = worker.tasks.update(taskId, await lineitem(worker))
    await expect.poll(() => task.status().bufferedPages).toBeGreaterThanOrEqual(4)
    // The engine is blocked: only pages in flight may still be written.
    await new Promise((resolve) => setTimeout(resolve, 700))
    const held = task.status().bufferedPages
    expect(held).toBeLessThan(12)
    expect(task.state()).toBe('RUNNING')
    let rows = 0
    for (let token = 0; ; token++) {
      await task.waitForPage(token, 60_000)
      const found = await task.page(token)
      if (!found) break
      rows += (JSON.parse(found.bytes.toString()) as unknown[]).length
      await task.acknowledge(token + 1)
      expect(worker.tasks.usage().pageBytes).toBeLessThan(1024 * 1024)
    }
    expect(await task.ended).toBe('FINISHED')
    expect(rows).toBe(60175)
    expect(task.status().stats.blockedNanos).toBeGreaterThan(500e6)
    expect(worker.tasks.usage().pageBytes).toBe(0)
  })

  it('does not block another query while one query has too many pages', async () => {
    await using worker = await openTestWorker({ limits: { pageBytes: 64 * 1024, queryBytes: 256 * 1024 } })
    const stuck = worker.tasks.update(worker.nextTaskId(), await lineitem(worker))
    await expect.poll(() => stuck.status().bufferedPages).toBeGreaterThanOrEqual(4)
    const scan = { connector: worker.tpch, schema: 'tiny', table: 'nation', columns: ['name'] }
    const other = await worker.run(
      worker.nextTaskId(),
      await updateFor([scan], 'SELECT name AS c0 FROM "$s0"', 1, streaming),
    )
    expect(other.state).toBe('FINISHED')
    stuck.cancel('CANCELED')
    await expect.poll(() => worker.engines.pool.children().some(({ state }) => state === 'busy')).toBe(false)
  })

  it('serves the pages of a finished task after a restart', async () => {
    await using worker = await openTestWorker()
    const taskId = worker.nextTaskId()
    const before = await worker.run(taskId, await lineitem(worker))
    const rows = await worker.rows(taskId)
    await worker.tasks.get(taskId)!.acknowledge(1)
    const tasks = await worker.restart()
    const after = tasks.get(taskId)!.status()
    expect(after).toMatchObject({
      state: 'FINISHED',
      instanceId: before.instanceId,
      pages: before.pages,
      batchesDone: [0],
      pagesSent: 1,
      bufferState: 'FLUSHING',
    })
    expect(after.version).toBeGreaterThan(before.version)
    expect(after.stats).toEqual(before.stats)
    expect(tasks.get(taskId)!.isAcknowledged(0)).toBe(true)
    const read: unknown[][] = []
    for (const { token } of after.pages.slice(1)) {
      read.push(...(JSON.parse((await tasks.get(taskId)!.page(token))!.bytes.toString()) as unknown[][]))
    }
    expect(read).toEqual(rows.slice(before.pages[0]!.rows))
    expect(tasks.usage().pageBytes).toBe(before.pages.slice(1).reduce((sum, { bytes }) => sum + bytes, 0))
    await tasks.delete(taskId, 'CANCELED')
    expect(tasks.usage().pageBytes).toBe(0)
  })

  it('fails a task that ran when its worker was restarted, and keeps its listed pages', async () => {
    await using worker = await openTestWorker({ limits: { pageBytes: 64 * 1024, queryBytes: 256 * 1024 } })
    const taskId = worker.nextTaskId()
    const task = worker.tasks.update(taskId, await lineitem(worker))
    await expect.poll(() => task.status().bufferedPages).toBeGreaterThanOrEqual(4)
    const { queryId, stage, task: number } = splitTaskId(taskId)!
    const index = join(worker.folder, 'pages', queryId, `${stage}.${number}`, 'index.jsonl')
    const { readFileSync } = await import('node:fs')
    const asKilled = readFileSync(index, 'utf8')
    const listed = task.status().pages
    const tasks = await worker.restart()
    // A killed process writes no end, and may leave an incomplete line and an incomplete page.
    await tasks.stop()
    writeFileSync(index, `${asKilled}{"type":"page","tok`)
    writeFileSync(join(index, '..', '999.json.tmp'), '[[1')
    const again = await worker.restart()
    expect(again.get(taskId)!.status()).toMatchObject({
      state: 'FAILED',
      failure: { errorName: 'REMOTE_TASK_ERROR' },
    })
    expect(again.get(taskId)!.status().pages.slice(0, listed.length)).toEqual(listed)
    expect((await again.get(taskId)!.page(0))!.bytes.length).toBe(listed[0]!.bytes)
    expect(pageFiles(worker, taskId)).not.toContain('999.json.tmp')
  })

  it('checks the hash of a page of an earlier process at its first use', async () => {
    await using worker = await openTestWorker()
    const taskId = worker.nextTaskId()
    const { pages } = await worker.run(taskId, await lineitem(worker))
    const { queryId, stage, task } = splitTaskId(taskId)!
    const path = join(worker.folder, 'pages', queryId, `${stage}.${task}`, '1.json')
    writeFileSync(path, Buffer.alloc(pages[1]!.bytes, 'x'))
    await worker.restart()
    expect((await worker.call('GET', `/v1/task/${taskId}/results/0/0`)).status).toBe(200)
    expect((await worker.call('GET', `/v1/task/${taskId}/results/0/1`)).status).toBe(410)
  })
})
