import type { TaskStatus } from '../api/task.ts'
import type { StoredTask } from './page-folders.ts'
import type { TaskDeps, WorkerTask } from './task.ts'
import { NOTHING_USED, taskStats } from './task-figures.ts'
import { TaskOutput } from './task-output.ts'
import { lostFailure } from './wire-failure.ts'

/**
 * Restores a task that an earlier process of this worker ran, and serves its listed pages. A task that had not ended
 * has failed with its process.
 */
export function restoreTask(deps: TaskDeps, stored: StoredTask): WorkerTask {
  const { clock } = deps
  const { taskId, lines, firstPresent } = stored
  const output = new TaskOutput(deps, taskId)
  const { buffer } = output
  const version = deps.news.next()
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
    failure: lostFailure(`The worker was restarted while task ${taskId} ran`),
    stats: taskStats({
      createdAt,
      startedAt: createdAt,
      endedAt: heartbeatAt,
      now: heartbeatAt,
      batchesTotal: 0,
      batchesRunning: 0,
      done: [],
      unfinished: NOTHING_USED,
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
        pagesSent: buffer.sent(),
        bufferedPages: buffer.listed() - buffer.sent(),
      }
    },
    page: (token) => output.page(token),
    isAcknowledged: (token) => output.isAcknowledged(token),
    isComplete: () => true,
    waitForPage: () => Promise.resolve(),
    acknowledge: (before) => output.acknowledge(before),
    send: () => buffer.send(),
    isSent: () => buffer.isSent(),
    isQuiet: () => false,
    keep: () => {},
    drop: () => output.drop(),
  }
}
