import express from 'express'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { ErasureOrder } from '../../../src/erasure/erasure-store.ts'
import { setCaller } from '../../../src/protocol/access/caller.ts'
import { HttpProblem } from '../../../src/protocol/edge/problem.ts'
import { createErasureRoutes } from '../../../src/protocol/erasure/erasure-routes.ts'
import { erasureInfoSchema, type ErasureInfo } from '../../../src/protocol/info/schemas/server.ts'
import { serve, type HttpApp } from '../../support/http-app.ts'

let app: HttpApp
let begun: unknown[] = []
const info = (preview: boolean): ErasureInfo => ({
  erasureId: 'e-1',
  state: 'RUNNING',
  preview,
  requestedAt: '2026-11-27T10:00:00.000Z',
})

beforeAll(async () => {
  const callers = express.Router()
  // The listener of a server verifies the sender before any router sees the request.
  callers.use((request, _response, next) => {
    const user = request.headers['x-user']
    if (typeof user === 'string')
      setCaller(request, { kind: 'principal', principal: { name: user, groups: [] } as never })
    next()
  })
  app = await serve(
    callers,
    createErasureRoutes({
      isInternal: (request) => request.headers.authorization === 'Bearer key',
      identify: (request) => ({ user: String(request.headers['x-user']), groups: [] }) as never,
      authorize: ({ user }, { action }) => action === 'writeSystem' && user === 'keeper',
      preview: async (order: ErasureOrder) => (begun.push(order), info(true)),
      async begin(order, { by }) {
        if (order.reason === 'busy') throw new HttpProblem(409, 'Erasure e-0 runs: wait until it has ended')
        begun.push({ ...order, by })
        return info(false)
      },
      find: async (id) => (id === 'e-1' ? info(false) : undefined),
    }),
  )
})
beforeEach(() => {
  begun = []
})
afterAll(() => app.close())

async function ask(method: string, path: string, headers: Record<string, string>, body?: unknown) {
  const response = await fetch(`${app.base}/v1/erasure${path}`, {
    method,
    headers: { 'content-type': 'application/json', accept: 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: response.status, location: response.headers.get('location'), text: await response.text() }
}

const key = { authorization: 'Bearer key' }
const keeper = { 'x-user': 'keeper' }

it('the erasure resource begins an erasure for an administrator and for the key of the cluster', async () => {
  const answer = await ask('POST', '', keeper, { value: 'eva@example.com', reason: 'asked' })
  expect(answer).toMatchObject({ status: 202, location: '/v1/erasure/e-1' })
  expect(erasureInfoSchema.parse(JSON.parse(answer.text))).toMatchObject({ state: 'RUNNING', preview: false })
  expect((await ask('POST', '', key, { user: 'eva', mentions: true, by: 'officer' })).status).toBe(202)
  expect((await ask('POST', '/preview', keeper, { user: 'eva' })).status).toBe(202)
  expect((await ask('GET', '/e-1', key)).status).toBe(200)
  expect(begun).toEqual([
    { subject: { value: 'eva@example.com' }, mentions: false, reason: 'asked', by: 'keeper' },
    { subject: { user: 'eva' }, mentions: true, by: 'officer' },
    { subject: { user: 'eva' }, mentions: false },
  ])
})

it('the erasure resource answers 401 without a user or the key, and 403 to users without the right', async () => {
  for (const [method, path] of [
    ['POST', ''],
    ['POST', '/preview'],
    ['GET', '/e-1'],
  ] as const) {
    const body = method === 'POST' ? { value: 'eva@example.com' } : undefined
    expect((await ask(method, path, {}, body)).status).toBe(401)
    expect((await ask(method, path, { 'x-user': 'bob' }, body)).status).toBe(403)
  }
  expect(begun).toEqual([])
})

it.each([
  ['neither a user nor a value', {}],
  ['both', { user: 'a', value: 'abc' }],
  ['a value of two letters', { value: 'ab' }],
  ['an unknown field', { user: 'eva', force: true }],
  ['an empty reason', { user: 'eva', reason: '' }],
])('POST /v1/erasure answers 400 to %s', async (_, body) => {
  expect((await ask('POST', '', keeper, body)).status).toBe(400)
  expect(begun).toEqual([])
})

it('the erasure resource answers 400 to a command that names no user, 409 while another erasure runs, 404 for an unknown id', async () => {
  expect((await ask('POST', '', key, { user: 'eva' })).status).toBe(400)
  expect((await ask('POST', '', keeper, { user: 'eva', reason: 'busy' })).status).toBe(409)
  expect((await ask('GET', '/e-2', keeper)).status).toBe(404)
})
