// A server with Trino's protocol that runs no statement: each has the same answers, at times that a measurement chooses.
import { createServer } from 'node:http'

/**
 * The answers to a short read, as a Trino 476 gives them: milliseconds after the first GET from which each is there. The
 * work goes on between the requests.
 */
export const LIKE_TRINO = {
  postMs: 3,
  figuresMs: 6,
  answers: [
    { state: 'queued', at: 2 },
    { state: 'queued', at: 14 },
    { state: 'executing', at: 22 },
    { state: 'executing', at: 30 },
    { state: 'executing', at: 38, rows: [[1]] },
    { state: 'executing', at: 44 },
  ],
}

/** The same answers, each at once. */
export const AT_ONCE = { postMs: 0, figuresMs: 0, answers: LIKE_TRINO.answers.map((answer) => ({ ...answer, at: 0 })) }

/** A statement that never ends: each answer says after a second that it runs. */
export const ENDLESS = {
  postMs: 0,
  figuresMs: 0,
  answers: Array.from({ length: 10_000 }, (_, index) =>
    index < 2 ? { state: 'queued', at: 0 } : { state: 'executing', at: 1000 * (index - 1) },
  ),
}

const COLUMNS = [{ name: '_col0', type: 'integer', typeSignature: { rawType: 'integer', arguments: [] } }]
const STATS = {
  nodes: 1,
  totalSplits: 1,
  queuedSplits: 0,
  runningSplits: 0,
  completedSplits: 1,
  planningTimeMillis: 10,
  analysisTimeMillis: 1,
  cpuTimeMillis: 2,
  wallTimeMillis: 2,
  queuedTimeMillis: 1,
  elapsedTimeMillis: 40,
  finishingTimeMillis: 0,
  physicalInputTimeMillis: 0,
  processedRows: 0,
  processedBytes: 0,
  physicalInputBytes: 0,
  physicalWrittenBytes: 0,
  internalNetworkInputBytes: 0,
  peakMemoryBytes: 132,
  spilledBytes: 0,
}

/** @param seen called with the name of each moment of a request, such as `cluster GET 2 answered` */
export async function startFakeTrino(script, seen = () => {}) {
  const queries = new Map()
  let base
  const server = createServer((request, response) => {
    request.resume()
    request.on('end', () => answer(request, response))
  })

  const later = (ms, work) => (ms > 0 ? setTimeout(work, ms) : work())

  function send(response, body, status = 200) {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(body))
  }

  function answer({ method, url }, response) {
    if (url === '/v1/info')
      return send(response, { nodeVersion: { version: '476' }, coordinator: true, starting: false })
    if (method === 'POST') return post(response)
    if (url.startsWith('/v1/query/')) return figures(url, response)
    const [, , , , id, , token] = url.split('/')
    const query = queries.get(id)
    if (method === 'DELETE') {
      queries.delete(id)
      return response.writeHead(204).end()
    }
    if (!query) return response.writeHead(404).end()
    if (method === 'HEAD') return response.writeHead(200).end()
    return get(id, query, Number(token), response)
  }

  function post(response) {
    seen('cluster POST asked')
    const id = `20260101_000000_${String(queries.size).padStart(5, '0')}_fake0`
    queries.set(id, { beganAt: undefined, highest: 0 })
    later(script.postMs, () => {
      seen('cluster POST answered')
      const stats = { state: 'QUEUED', queued: true, scheduled: false, ...STATS }
      send(response, { id, infoUri: `${base}/ui/${id}`, nextUri: uriOf(id, 0), stats, warnings: [] })
    })
  }

  const uriOf = (id, token) => `${base}/v1/statement/${script.answers[token].state}/${id}/yslug/${token}`

  function get(id, query, token, response) {
    seen(`cluster GET ${token} asked`)
    if (token < query.highest) return response.writeHead(410).end()
    query.highest = token
    query.beganAt ??= performance.now()
    const { state, at, rows } = script.answers[token]
    const isLast = token + 1 === script.answers.length
    later(query.beganAt + at - performance.now(), () => {
      seen(`cluster GET ${token} answered`)
      send(response, {
        id,
        infoUri: `${base}/ui/${id}`,
        ...(isLast ? {} : { nextUri: uriOf(id, token + 1) }),
        ...(state === 'executing' ? { columns: COLUMNS } : {}),
        ...(rows ? { data: rows } : {}),
        stats: { state: isLast ? 'FINISHED' : state === 'queued' ? 'QUEUED' : 'RUNNING', ...STATS },
        warnings: [],
      })
    })
  }

  function figures(url, response) {
    seen('cluster figures asked')
    later(script.figuresMs, () => {
      seen('cluster figures answered')
      const queryStats = { outputPositions: 1, totalCpuTime: '2.00ms', elapsedTime: '40.00ms' }
      send(response, { queryId: url.split('/')[3], state: 'FINISHED', queryStats })
    })
  }

  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  base = `http://127.0.0.1:${server.address().port}`
  return {
    base,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
