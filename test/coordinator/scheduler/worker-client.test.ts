import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { createWorkerClient, type WorkerClient } from '../../../src/coordinator/scheduler/worker-client.ts'
import { StaleEpoch, WorkerLost, WorkerRefused } from '../../../src/coordinator/scheduler/worker-error.ts'
import { parseTaskId } from '../../../src/shared/ids.ts'
import { howToRetry } from '../../../src/shared/quipu-error.ts'
import { fragment, taskStatus } from '../../support/stage-bed.ts'
import { QUERY_ID } from '../../support/query-events.ts'
import type { TaskUpdate } from '../../../src/execution/api/task.ts'
import { createServerTrust } from '../../../src/shared/server-trust.ts'

const TASK = parseTaskId(`${QUERY_ID}.1.0`)
const REQUEST_TIMEOUT_MS = 60_000
const PAGE_MAX_BYTES = 1024 * 1024
const update: TaskUpdate = {
  session: { queryId: QUERY_ID, user: 'alice', startTimeMillis: 0 },
  fragment,
  splits: [],
  noMoreSplits: true,
  outputBuffers: { buffers: ['0'] },
  attempt: 0,
  profile: false,
}

let server: Server
let client: WorkerClient
let url: string
let answer: RequestListener
let seenHigher: boolean
const requests: string[] = []

beforeAll(async () => {
  server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    answer(request, response)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  client = createWorkerClient({
    trust: createServerTrust({}),
    epoch: () => 7,
    logId: 'a-log',
    bearer: 'key',
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
    taskBodyBytes: 10_000,
    pageMaxBytes: PAGE_MAX_BYTES,
    onStaleEpoch: async () => seenHigher,
  })
})
beforeEach(() => {
  requests.length = 0
  seenHigher = true
})
afterAll(() => {
  client.close()
  server.closeAllConnections()
  server.close()
})

const says =
  (status: number, body = ''): RequestListener =>
  (_request, response) =>
    void response.writeHead(status).end(body)

/** All requests to a worker. */
const asks: Readonly<Record<string, () => Promise<unknown>>> = {
  createTask: () => client.createTask(url, TASK, update),
  getTask: () => client.getTask(url, TASK),
  deleteTask: () => client.deleteTask(url, TASK, true),
  deleteTasks: () => client.deleteTasks(url, [TASK]),
  fetchPage: () => client.fetchPage(url, { taskId: TASK, token: 0, bytes: 100 }),
  acknowledge: () => client.acknowledge(url, TASK, 1),
  taskNews: () => client.taskNews(url, undefined, new AbortController().signal),
}

describe.each(Object.entries(asks))('%s', (_name, ask) => {
  it.each([400, 401, 403, 405, 415, 422])('fails with WorkerRefused for the status %d', async (status) => {
    answer = says(status, 'because')
    const error = await ask().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(WorkerRefused)
    expect(error).toMatchObject({ status, message: expect.stringContaining(`HTTP ${status}: because`) })
    expect(howToRetry(error)).toBe('never')
    expect(requests).toHaveLength(1)
  })

  it.each([302, 408, 429, 500, 502, 503])('fails with WorkerLost for the status %d', async (status) => {
    answer = says(status)
    const error = await ask().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(WorkerLost)
    expect(howToRetry(error)).toBe('later')
  })

  it('fails with WorkerLost when the worker closes the connection', async () => {
    answer = (request) => void request.socket.destroy()
    await expect(ask()).rejects.toBeInstanceOf(WorkerLost)
    answer = (_request, response) => {
      response.writeHead(200, { 'content-length': '1000' })
      response.write('half', () => response.destroy())
    }
    await expect(ask()).rejects.toBeInstanceOf(WorkerLost)
  })

  it('fails with StaleEpoch for the status 409 only when a higher epoch is confirmed', async () => {
    answer = says(409)
    await expect(ask()).rejects.toBeInstanceOf(StaleEpoch)
    seenHigher = false
    await expect(ask()).rejects.toBeInstanceOf(WorkerLost)
  })
})

/** Sends bytes as fast as the client reads them, without end. */
function endless(status: number, sent: { bytes: number }): RequestListener {
  const chunk = Buffer.alloc(1024 * 1024, 0x20)
  return (_request, response) => {
    response.writeHead(status)
    const more = (): void => {
      while (!response.destroyed) {
        sent.bytes += chunk.length
        if (!response.write(chunk)) return void response.once('drain', more)
      }
    }
    more()
  }
}

describe.each(Object.entries(asks))('%s with an endless answer', (name, ask) => {
  const most = name === 'fetchPage' ? 100 : name === 'taskNews' ? 128 * 2 ** 20 : 64 * 2 ** 20

  // One request for each limit.
  it.runIf(['createTask', 'fetchPage', 'taskNews'].includes(name))(
    'fails with WorkerLost once the answer exceeds the limit',
    async () => {
      const sent = { bytes: 0 }
      answer = endless(200, sent)
      const error = await ask().catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(WorkerLost)
      expect(error).toMatchObject({ message: expect.stringContaining(`more than the ${most} bytes`) })
      // The buffers of the connection hold bytes that the client never reads.
      expect(sent.bytes).toBeLessThan(most + 32 * 2 ** 20)
    },
  )

  it('fails at once when the content-length exceeds the limit', async () => {
    answer = (_request, response) => void response.writeHead(200, { 'content-length': String(most + 1) }).write('x')
    await expect(ask()).rejects.toThrow(`more than the ${most} bytes`)
  })

  it('fails with WorkerLost when the endless answer has the status 400', async () => {
    answer = endless(400, { bytes: 0 })
    await expect(ask()).rejects.toBeInstanceOf(WorkerLost)
  })
})

describe('`fetchPage`', () => {
  const page = (bytes: number) => client.fetchPage(url, { taskId: TASK, token: 0, bytes })

  it('returns the page, and fails with WorkerLost when it is longer than listed', async () => {
    answer = says(200, '[[1]]')
    expect(String(await page(5))).toBe('[[1]]')
    await expect(page(4)).rejects.toBeInstanceOf(WorkerLost)
  })

  it('reads at most the maximum size of a page, even when a larger size is listed', async () => {
    answer = endless(200, { bytes: 0 })
    await expect(page(2 ** 40)).rejects.toThrow(`more than the ${PAGE_MAX_BYTES} bytes`)
  })

  it.each([404, 410])('returns undefined for the status %d', async (status) => {
    answer = says(status)
    expect(await page(5)).toBeUndefined()
  })
})

describe('`getTask`', () => {
  it('fails when the answer arrives byte by byte and does not end in time', async () => {
    const real = performance.now.bind(performance)
    let later = 0
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => real() + later)
    try {
      answer = (_request, response) => {
        response.writeHead(200)
        const timer = setInterval(() => {
          response.write(' ')
          later += REQUEST_TIMEOUT_MS / 10
        }, 20)
        response.on('close', () => clearInterval(timer))
      }
      await expect(client.getTask(url, TASK)).rejects.toThrow('without end')
    } finally {
      clock.mockRestore()
    }
  })

  it('derives `retriable` from the error name when an older worker does not send it', async () => {
    const failure = {
      errorName: 'REMOTE_TASK_ERROR',
      errorCode: 65542,
      errorType: 'INTERNAL_ERROR',
      message: 'gone',
    } as const
    answer = says(200, JSON.stringify(taskStatus(TASK, { state: 'FAILED', failure })))
    expect((await client.getTask(url, TASK))?.failure).toMatchObject({ retriable: true })
    const said = { ...failure, retriable: false }
    answer = says(200, JSON.stringify(taskStatus(TASK, { state: 'FAILED', failure: said })))
    expect((await client.getTask(url, TASK))?.failure).toMatchObject({ retriable: false })
  })
})
