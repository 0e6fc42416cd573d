import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createWorkerClient, type WorkerClient } from '../../../src/coordinator/scheduler/worker-client.ts'
import { parseTaskId } from '../../../src/shared/ids.ts'
import { WorkerLost } from '../../../src/coordinator/scheduler/worker-error.ts'
import { createServerTrust } from '../../../src/shared/server-trust.ts'
import { taskStats } from '../../support/query-events.ts'
import { taskStatus } from '../../support/stage-bed.ts'

const taskId = parseTaskId('20260101_000000_00000_00001.1.0')

/** The status of a task with the figures of a task that ran. */
function status(
  changed: Readonly<Record<string, unknown>> = {},
  stats: Readonly<Record<string, unknown>> = {},
): unknown {
  return { ...taskStatus(taskId), stats: { ...taskStats, ...stats }, ...changed }
}

describe('A worker with invalid answers', () => {
  let server: Server
  let client: WorkerClient
  let url: string
  let answer = ''

  beforeAll(async () => {
    server = createServer((_request, response) => void response.end(answer)).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    client = createWorkerClient({
      trust: createServerTrust({}),
      epoch: () => 1,
      logId: 'a-log',
      bearer: 'key',
      requestTimeoutMs: 30_000,
      taskBodyBytes: 1024,
      pageMaxBytes: 1024,
      onStaleEpoch: async () => true,
    })
  })
  afterAll(() => {
    client.close()
    server.closeAllConnections()
    server.close()
  })

  it.each([
    ['a fractional count', status({}, { outputPositions: 0.5 })],
    ['a count that is too large', status({}, { outputPositions: 1e300 })],
    ['an impossible date', status({}, { createTime: '2026-13-99T00:00:00Z' })],
    ['a text in place of a time', status({ lastHeartbeat: "'; --" })],
    [
      'a page with a fractional number of bytes',
      status({ pages: [{ token: 0, batch: 0, rows: 1, bytes: 0.5, sha256: '', lastOfBatch: true }] }),
    ],
    ['another task', status({ taskId: '20260101_000000_00000_00001.1.7' })],
    ['no status', {}],
    ['null', null],
  ])('counts as lost when it answers a task request with %s', async (_what, said) => {
    answer = JSON.stringify(said)
    await expect(client.getTask(url, taskId)).rejects.toBeInstanceOf(WorkerLost)
  })

  it('counts as lost when news contain one invalid status or no JSON', async () => {
    answer = JSON.stringify([status(), status({}, { cpuNanos: 1e300 })])
    await expect(client.taskNews(url, undefined, new AbortController().signal)).rejects.toBeInstanceOf(WorkerLost)
    answer = '<html>'
    await expect(client.taskNews(url, undefined, new AbortController().signal)).rejects.toBeInstanceOf(WorkerLost)
  })

  it('does not count as lost when only an estimate of the engine is too large', async () => {
    const operator = Object.fromEntries(
      ['operatorId', 'inputPositions', 'outputPositions', 'inputBytes', 'outputBytes', 'timeNanos', 'blockedNanos']
        .concat(['addInputCalls', 'getOutputCalls', 'finishCalls'])
        .map((name) => [name, 1]),
    )
    const pipeline = Object.fromEntries(
      ['pipelineId', 'memoryBytes', 'rawInputBytes', 'rawInputPositions', 'processedInputBytes']
        .concat(['processedInputPositions', 'outputBytes', 'outputPositions', 'totalDrivers', 'queuedDrivers'])
        .concat(['runningDrivers', 'completedDrivers', 'scheduledNanos', 'cpuNanos', 'blockedNanos'])
        .map((name) => [name, 1]),
    )
    const names = { operatorType: 'a', engineOperator: 'b', estimatedPositions: 2 ** 64 }
    const pipelines = [
      { ...pipeline, inputPipeline: true, outputPipeline: true, drivers: [], operators: [{ ...operator, ...names }] },
    ]
    answer = JSON.stringify(status({}, { pipelines }))
    expect((await client.getTask(url, taskId))?.taskId).toBe(taskId)
  })
})
