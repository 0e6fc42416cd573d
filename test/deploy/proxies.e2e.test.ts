import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAuthority, type TestAuthority } from '../support/certificates.ts'
import { found, haproxy, nginx, startProxy, type RunningProxy } from '../support/proxies.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { rowReaders } from '../support/row-readers.ts'
import { rolesOf, startStandbyCluster, type StandbyCluster } from '../support/standby-cluster.ts'

/** Reading this result takes some seconds, so that the kill falls into the reading. */
const STREAM = 'SELECT orderkey, linenumber, comment FROM lineitem'
const LINES = 60_175

const programs = [await found(haproxy, 'haproxy'), await found(nginx, 'nginx')].filter((one) => one !== undefined)

describe('The proxy configurations in deploy/proxy', () => {
  let folder: string
  let authority: TestAuthority
  let cluster: StandbyCluster
  const running: RunningProxy[] = []

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'quipu-proxy-'))
    authority = await createAuthority()
    cluster = await startStandbyCluster({ QUIPU_TRUSTED_PROXIES: '127.0.0.1' })
  }, 240_000)
  afterAll(async () => {
    for (const proxy of running) await proxy.stop()
    await cluster?.stop()
    await authority?.remove()
    await rm(folder, { recursive: true, force: true })
  }, 240_000)

  describe.each(programs.map((program) => [program.name, program] as const))('%s', (_, program) => {
    it('route clients to the writer, and to the other coordinator after kill -9 of the writer', async () => {
      const proxy = await startProxy({ program, authority, coordinators: [cluster.a.url, cluster.b.url], folder })
      running.push(proxy)
      const base = proxy.url
      const readers = await rowReaders()
      const logIn = { user: 'ana', ca: authority.ca }
      // All clients work through the proxy before the kill.
      const { writer } = await rolesOf(cluster)
      for (const [name, reader] of readers)
        await waitUntil(`${name} gets an answer`, async () => {
          const { stdout } = await reader.read(base, 'SELECT count(*) FROM nation', logIn)
          return stdout.trim() === '25'
        })
      const reading = [...readers].map(async ([name, reader]) => ({
        name,
        ...(await reader.read(base, STREAM, logIn)),
      }))
      await sleep(500)
      await writer.kill()
      for (const { name, stdout, code, stderr } of await Promise.all(reading)) {
        expect({ name, code, stderr: stderr.slice(0, 500) }).toMatchObject({ code: 0 })
        const lines = stdout.trim().split('\n')
        expect({ name, rows: lines.length, different: new Set(lines).size }).toEqual({
          name,
          rows: LINES,
          different: LINES,
        })
      }
      await writer.start()
      await rolesOf(cluster)
    }, 400_000)
  })
})
