import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, inject, it } from 'vitest'
import { run } from '../support/statement-client.ts'
import { gatewayOfFile, headers, untilHealthy } from './gateway.ts'
import { SERVICE } from './trino-server.ts'

function secured(folder: string): Readonly<Record<string, unknown>> {
  const passwordFile = join(folder, 'password')
  writeFileSync(passwordFile, `${SERVICE.password}\n`, { mode: 0o644 })
  // The user of the coordinator cannot read the folder of the authority.
  const caFile = join(folder, 'ca.pem')
  copyFileSync(inject('trinoCa'), caFile)
  return {
    url: inject('trinoSecureUrl'),
    caFile,
    authentication: { type: 'password', user: SERVICE.user, passwordFile },
  }
}

const asCaller = gatewayOfFile(secured)
const asService = gatewayOfFile((folder) => ({ ...secured(folder), runAs: 'service' }))
beforeAll(async () => {
  await untilHealthy(asCaller)
  await untilHealthy(asService)
})

const WHO = 'SELECT current_user FROM tpch.tiny.region LIMIT 1'

describe('A Trino with TLS and passwords', () => {
  it.each(['alice', 'bob', 'müller'])('runs statements as their user %s', async (user) => {
    const { rows, error } = await run(asCaller.url, WHO, { ...headers, 'x-trino-user': user })
    expect(error).toBeUndefined()
    expect(rows).toEqual([[user]])
  })

  it('runs statements as the service user where the cluster file says so', async () => {
    const { rows, error } = await run(asService.url, WHO, { ...headers, 'x-trino-user': 'alice' })
    expect(error).toBeUndefined()
    expect(rows).toEqual([[SERVICE.user]])
  })

  it('refuses a user that the gateway may not impersonate, with its own error', async () => {
    const { error } = await run(asCaller.url, WHO, { ...headers, 'x-trino-user': 'root' })
    expect(error).toMatchObject({
      errorName: 'PERMISSION_DENIED',
      message: expect.stringContaining('cannot impersonate user root'),
    })
  })

  it('lets the service user see the figures of the statements of others', async () => {
    const { answers, error } = await run(asCaller.url, 'SELECT * FROM tpch.tiny.nation', headers)
    expect(error).toBeUndefined()
    expect(answers.at(-1)!.stats['processedRows']).toBe(25)
  })
})
