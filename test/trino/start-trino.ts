import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { createAuthority } from '../support/certificates.ts'
import { startTrino } from './trino-server.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Over plain HTTP every user name is accepted. */
    trinoUrl: string
    /** Over TLS users need a password. */
    trinoSecureUrl: string
    /** The file of the authority of its certificate. */
    trinoCa: string
    trinoPid: number
  }
}

/** Starts the Trino that all test files use, and stops it after them. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'quipu-trino-'))
  const authority = await createAuthority()
  const server = await startTrino(folder, authority)
  // Vitest is stopped without the tear-down when it is interrupted twice.
  process.once('exit', () => server.kill())
  project.provide('trinoUrl', server.url)
  project.provide('trinoSecureUrl', server.secureUrl)
  project.provide('trinoCa', authority.ca)
  project.provide('trinoPid', server.pid)
  return async () => {
    await server.stop()
    await authority.remove()
    await rm(folder, { recursive: true, force: true })
  }
}
