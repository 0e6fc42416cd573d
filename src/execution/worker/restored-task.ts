import { failureOf } from '../../shared/engine-error.ts'
import type { TaskStatus } from '../api/task.ts'
import { createOutputBuffer } from './output-buffer.ts'
import type { StoredTask } from './page-store.ts'
import { readPage } from './read-page.ts'
import type { TaskDeps, WorkerTask } from './task.ts'
import { taskStats } from './task-figures.ts'
import { wireFailure } from './wire-failure.ts'

/**
 * A task that an earlier process of this worker ran: its listed pages are served on. One that had not ended has failed
 * with its process.
 */
export function restoreTask(deps: TaskDeps, stored: StoredTask): WorkerTask {
  const { pages, clock } = deps
  const { taskId, lines, firstPresent } = stored
  const buffer = createOutputBuffer()
  const version = deps.nextVersion()
  let heartbeatAt = clock.now()
  let instanceId = ''
  let attempt = 0
  let createTime = new Date(heartbeatAt).toISOString()
  let last: Omit<TaskStatus, 'pages' | 'inlinePages'> | undefined
  for (const line of lines) {
    if (line.type === 'task') ({ instanceId, attempt, createTime } = line)
    else if (line.type === 'end') last = line.status
    else {
      const { type: _, ...page } = line
      buffer.list(page, version)
    }
  }
  buffer.acknowledge(firstPresent ?? buffer.listed())
  const state = last?.state ?? 'FAILED'
  buffer.close(state === 'FAILED' ? 'failed' : state === 'FINISHED' ? 'ended' : 'dropped')
  const createdAt = Date.parse(createTime)
  const final: Omit<TaskStatus, 'pages' | 'inlinePages'> = last ?? {
    taskId,
    instanceId,
    version,
    state: 'FAILED',
    lastHeartbeat: createTime,
    attempt,
    bufferState: 'FAILED',
    noMoreSplits: [],
    batchesDone: [],
    batchesTotal: 0,
    pagesSent: 0,
    bufferedPages: 0,
    failure: wireFailure(failureOf('REMOTE_TASK_ERROR', `The worker was restarted while task ${taskId} ran`)),
    stats: taskStats({
      createdAt,
      startedAt: createdAt,
      endedAt: heartbeatAt,
      now: heartbeatAt,
      batchesTotal: 0,
      batchesRunning: 0,
      done: [],
      outputPositions: buffer.rows(),
      outputBytes: buffer.bytes(),
      profile: false,
      pipelines: [],
    }),
  }
  return {
    taskId,
    version: () => version,
    state: () => state,
    ended: Promise.resolve(state),
    update: () => {},
    cancel: () => {},
    status(since) {
      heartbeatAt = clock.now()
      return {
        ...final,
        version,
        lastHeartbeat: new Date(heartbeatAt).toISOString(),
        bufferState: buffer.state(),
        pages: buffer.since(since),
        pagesSent: buffer.acknowledged(),
        bufferedPages: buffer.listed() - buffer.acknowledged(),
      }
    },
    page: (token) => readPage(deps, taskId, buffer.page(token)),
    isAcknowledged: (token) => token < buffer.acknowledged(),
    isComplete: () => true,
    waitForPage: () => Promise.resolve(),
    async acknowledge(before) {
      await Promise.all(buffer.acknowledge(before).map(({ token, bytes }) => pages.remove(taskId, token, bytes)))
    },
    async drop() {
      const bytes = buffer.bufferedBytes()
      buffer.acknowledge(buffer.listed())
      buffer.close('dropped')
      await pages.removeTask(taskId, bytes)
    },
  }
}
