import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { nodeIdOf } from '../../src/execution/worker/node-id.ts'
import { Fault, type AttackFamily, type CaseContext } from './attack-case.ts'
import { sessionHeaders } from './statement.ts'

/** The answers of a defective or forged worker that has the key. */
const answers: readonly ((context: CaseContext, path: string, response: ServerResponse) => void)[] = [
  ({ texts }, _path, response) => void response.writeHead(200).end(texts.bytes(2000)),
  (_context, _path, response) => void response.writeHead(200).end('null'),
  (_context, _path, response) => void response.writeHead(200).end('[]'),
  (_context, _path, response) => void response.writeHead(200).end('{"taskId":"__proto__"}'),
  (_context, _path, response) => void response.writeHead(200, { 'content-length': '100' }).write('{'),
  (_context, _path, response) => void response.writeHead(409).end(),
  (_context, _path, response) => void response.writeHead(500).end('boom'),
  (_context, _path, response) => void response.writeHead(302, { location: 'file:///etc/passwd' }).end(),
  (_context, _path, response) => void response.destroy(),
  (_context, _path, response) => void response.writeHead(204).end(),
  // A finished task of another query, with invented rows.
  (context, _path, response) =>
    void response
      .writeHead(200, { 'x-engine-task-version': '1' })
      .end(JSON.stringify(statusOf('20000101_000000_00000_00000.1.0', context))),
  (context, path, response) =>
    void response.writeHead(200, { 'x-engine-task-version': '1' }).end(JSON.stringify(statusOf(taskIn(path), context))),
  (context, path, response) =>
    void response
      .writeHead(200, { 'x-engine-task-version': '1' })
      .end(JSON.stringify([statusOf(taskIn(path), context), statusOf('a.b.c', context)])),
]

function taskIn(path: string): string {
  return /\/v1\/task\/([^/?]+)/.exec(path)?.[1] ?? '20000101_000000_00000_00000.1.0'
}

function statusOf(taskId: string, { random, texts }: CaseContext): unknown {
  const figures = Object.fromEntries(
    [
      'elapsedNanos',
      'queuedNanos',
      'totalDrivers',
      'queuedDrivers',
      'runningDrivers',
      'completedDrivers',
      'totalSplits',
    ]
      .concat(['queuedSplits', 'runningSplits', 'completedSplits', 'memoryBytes', 'peakMemoryBytes', 'spilledBytes'])
      .concat(['scheduledNanos', 'cpuNanos', 'wallNanos', 'blockedNanos', 'rawInputBytes', 'rawInputPositions'])
      .concat(['processedInputBytes', 'processedInputPositions', 'outputBytes', 'outputPositions'])
      .map((name) => [name, random.pick([0, -1, 1e300, 2 ** 60, 0.5])]),
  )
  const data = random.pick(['[[1]]', '[["x","y","z"]]', '{}', 'null', texts.json(), '[]'])
  return {
    taskId,
    instanceId: texts.json(),
    version: 1,
    state: random.pick(['FINISHED', 'FAILED', 'RUNNING', 'CANCELED']),
    lastHeartbeat: texts.json(),
    attempt: random.pick([0, 1, -1]),
    bufferState: 'FINISHED',
    noMoreSplits: [],
    pages: [
      {
        token: random.pick([0, 5, -1]),
        batch: random.pick([0, 99]),
        rows: 1,
        bytes: Buffer.byteLength(data),
        sha256: texts.json(),
        lastOfBatch: true,
      },
    ],
    batchesDone: [random.pick([0, 99, -1])],
    batchesTotal: 1,
    pagesSent: 0,
    bufferedPages: 1,
    stats: { createTime: texts.json(), cpuExact: true, profiled: false, pipelines: [], ...figures },
    inlinePages: [{ token: 0, data }],
    ...(random.chance(0.3)
      ? { failure: { errorName: 'GENERIC_USER_ERROR', errorCode: 0, errorType: 'USER_ERROR', message: texts.json() } }
      : {}),
    ...(random.chance(0.3) ? { written: { rows: 1, files: [] } } : {}),
  }
}

/** A worker with the key and invalid answers: statements must end, with rows or an error, and all servers continue. */
export const fakeWorkers: AttackFamily = {
  name: 'fake workers',
  weight: 2,
  alone: true,
  async run(context) {
    const { random, bed } = context
    const answer = random.pick(answers)
    let asked = 0
    const server = createServer((request, response) => {
      asked++
      request.resume()
      answer(context, request.url ?? '/', response)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const announced = announceEachSecond(context, `fake-${random.whole(0, 2 ** 31)}`, url)
    try {
      await untilActive(context, url, () => asked > 0)
      // Tasks go to the worker that joined first, so the real worker leaves. Its next announcement brings it back.
      await leave(context, nodeIdOf(bed.worker.dataDir))
      for (let times = random.whole(1, 3); times > 0; times--) await runUnderLies(context)
      if (asked === 0) throw new Fault('a worker that announced itself is never asked')
    } finally {
      await announced.leave()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await untilActive(context, bed.worker.url)
    }
  },
}

const LIES_MS = 60_000

function announceEachSecond(
  context: CaseContext,
  nodeId: string,
  url: string,
): { readonly leave: () => Promise<void> } {
  const { wire, bed } = context
  const authorization = `Bearer ${bed.bearer}`
  const identity = { nodeId, url, version: '0.1.0', cores: 64, memoryBytes: 2 ** 40, epochSeen: 0 }
  const began = performance.now()
  const announce = (): Promise<unknown> =>
    Promise.all(
      bed.coordinators.map(async ({ url: base }) => {
        const body = JSON.stringify({ ...identity, uptimeMillis: Math.round(performance.now() - began) })
        await wire.ask(base, { method: 'PUT', target: '/v1/announcement', body, headers: { authorization } })
      }),
    )
  let last: Promise<unknown> = announce()
  const timer = setInterval(() => {
    last = announce()
    // The error is reported where the case awaits `last`.
    last.catch(() => {})
  }, 500)
  return {
    async leave() {
      clearInterval(timer)
      await last
      await leave(context, nodeId)
    },
  }
}

/** Waits until all coordinators list a worker as active, or until `enough` returns true. */
async function untilActive({ bed, wire }: CaseContext, url: string, enough = (): boolean => false): Promise<void> {
  for (const { name, url: base } of bed.coordinators) {
    for (const until = performance.now() + LIES_MS; !enough(); await sleep(50)) {
      const nodes = JSON.parse((await wire.ask(`${base}/v1/node`)).text) as { uri: string; state: string }[]
      if (nodes.some((node) => node.uri === url && node.state === 'active')) break
      if (performance.now() > until)
        throw new Fault(`${name} does not come to know of ${url}: ${JSON.stringify(nodes)}`)
    }
  }
}

async function leave({ bed, wire }: CaseContext, nodeId: string): Promise<void> {
  const headers = { authorization: `Bearer ${bed.bearer}` }
  for (const { url } of bed.coordinators) {
    await wire.ask(url, { method: 'DELETE', target: `/v1/announcement/${nodeId}`, headers })
  }
}

async function runUnderLies({ wire, bed }: CaseContext): Promise<void> {
  const sql = 'SELECT name FROM tpch.tiny.nation'
  const first = await wire.ask(`${bed.coordinators[0].url}/v1/statement`, { body: sql, headers: sessionHeaders })
  let answered = JSON.parse(first.text) as { nextUri?: string; id: string; error?: { errorName: string } }
  const until = performance.now() + LIES_MS
  while (answered.nextUri !== undefined) {
    if (performance.now() > until) {
      await wire.ask(answered.nextUri, { method: 'DELETE', mayFail: true })
      throw new Fault(`a statement of a lying worker does not end: ${answered.id}`)
    }
    const next = await wire.ask(answered.nextUri, { mayFail: true })
    if (next.status === 500) throw new Fault(`a lying worker makes an internal error: ${next.text}`)
    if (next.status === 503) continue
    answered = JSON.parse(next.text) as typeof answered
  }
  // A worker with the key may return any rows, so the rows are not checked.
  if (answered.error?.errorName === 'GENERIC_INTERNAL_ERROR') throw new Fault('a lying worker makes an internal error')
}
