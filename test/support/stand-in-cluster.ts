import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A server that answers checks of its health as a cluster does, and each statement with one row. */
export interface StandInCluster {
  readonly url: string
  /** Paths of the requests so far. */
  readonly asked: string[]
  /** `dead`: closes connections; `mute`: accepts them and says nothing; `wrong`: answers 503. */
  is: 'ready' | 'starting' | 'dead' | 'mute' | 'wrong'
  close(): Promise<void>
}

export async function startStandInCluster(is: StandInCluster['is'] = 'ready'): Promise<StandInCluster> {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(request.url ?? '')
    const path = request.url ?? ''
    if (stand.is === 'ready' && path.startsWith('/v1/statement')) return answerStatement(stand.url, path, response)
    answer(stand.is, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stand: StandInCluster = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    is,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return stand
}

const ID = 'stand_in_1'

/** The POST gets an address, and the request of that address the row. */
function answerStatement(url: string, path: string, response: ServerResponse): void {
  const body =
    path === '/v1/statement'
      ? { id: ID, nextUri: `${url}/v1/statement/executing/${ID}/1`, stats: { state: 'QUEUED' } }
      : { id: ID, columns: [{ name: 'a', type: 'integer' }], data: [[1]], stats: { state: 'FINISHED' } }
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function answer(is: StandInCluster['is'], response: ServerResponse): void {
  switch (is) {
    case 'dead':
      return void response.destroy()
    case 'mute':
      return
    case 'wrong':
      return void response.writeHead(503).end()
    case 'ready':
    case 'starting': {
      const info = { nodeVersion: { version: '476' }, coordinator: true, starting: is === 'starting', uptime: '1.00m' }
      return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(info))
    }
  }
}
