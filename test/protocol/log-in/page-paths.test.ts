import type { IncomingMessage } from 'node:http'
import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { pageTokenOf } from '../../../src/protocol/log-in/browser.ts'

const folder = new URL('../../../console/', import.meta.url)

/** The resources that the console requests: `/v1/query`, `/v1/node` … */
const asked = new Set(
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .flatMap((name) => readFileSync(new URL(name, folder), 'utf8').match(/(?<=['"`])\/v1\/\w+/g) ?? []),
)

it('the session cookie is accepted for exactly the resources that the page requests', () => {
  expect([...asked].sort()).toEqual([
    '/v1/act',
    '/v1/audit',
    '/v1/cluster',
    '/v1/events',
    '/v1/node',
    '/v1/query',
    '/v1/resourceGroupState',
    '/v1/statement',
    '/v1/status',
  ])
  for (const path of asked) expect(tokenAt(path), path).toBe('secret')
  for (const path of ['/v1/task', '/v1/stage/q.1/mac', '/v1/system/rebuilt'])
    expect(tokenAt(path), path).toBeUndefined()
})

function tokenAt(path: string): string | undefined {
  const headers = { host: 'localhost', cookie: '__Host-quipu-session=secret', 'sec-fetch-site': 'same-origin' }
  return pageTokenOf({
    method: 'GET',
    url: path,
    headers,
    rawHeaders: ['host', 'localhost'],
  } as unknown as IncomingMessage)
}
