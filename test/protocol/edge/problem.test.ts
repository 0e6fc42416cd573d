import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { answerError, HttpProblem } from '../../../src/protocol/edge/problem.ts'
import { problemHandler, pageResource, sendJson } from '../../../src/protocol/edge/resource.ts'
import { raw } from '../../support/statement-client.ts'

let server: Server
const errors: unknown[] = []
beforeAll(async () => {
  const app = express()
  const router = express.Router()
  pageResource(router, '/v1/thing/:name', { GET: (request, response) => sendJson(response, request.params) })
  router.use(problemHandler((error) => errors.push(error)))
  app.use(router)
  server = createServer(app).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
})
afterAll(() => void server.close())

it.each(['%', '%zz', '%ed%a0%80', '%c0%af', '%ff'])(
  'a path with %s is answered 400 and is not reported as a defect of the server',
  async (name) => {
    const { port } = server.address() as AddressInfo
    const { status, text } = await raw(`http://127.0.0.1:${port}/`, { target: `/v1/thing/${name}` })
    expect({ status, text }).toEqual({
      status: 400,
      text: 'Error 400 Bad Request: The path is not UTF-8 in percent-encoding',
    })
    expect(errors).toEqual([])
  },
)

it('`answerError` sends 429 after half a second, and other statuses at once', () => {
  vi.useFakeTimers()
  try {
    const statuses: number[] = []
    const answer = (status: number): void => {
      const request = { headers: {}, method: 'GET', complete: true } as unknown as IncomingMessage
      const response = { headersSent: false, writeHead: (sent: number) => statuses.push(sent), end() {} }
      answerError(request, response as unknown as ServerResponse, new HttpProblem(status, 'no'), undefined)
    }
    for (const status of [429, 503, 401]) answer(status)
    expect(statuses).toEqual([503, 401])
    vi.advanceTimersByTime(499)
    expect(statuses).toEqual([503, 401])
    vi.advanceTimersByTime(1)
    expect(statuses).toEqual([503, 401, 429])
  } finally {
    vi.useRealTimers()
  }
})
