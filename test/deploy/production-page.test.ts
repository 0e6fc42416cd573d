import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load-config.ts'

const run = promisify(execFile)
const root = new URL('../../', import.meta.url)
const folder = mkdtempSync(join(tmpdir(), 'quipu-page-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The shell blocks of a page, in their order. */
function blocksOf(page: string): readonly string[] {
  const text = readFileSync(new URL(`docs/${page}`, root), 'utf8')
  return [...text.matchAll(/^ *```sh\n([\s\S]*?)^ *```$/gm)].map((match) => match[1]!)
}

const blocks = blocksOf('production.md')
const isSettings = (block: string): boolean => block.split('\n').every((line) => /^([A-Z_]+=\S*)?$/.test(line))

describe('docs/production.md', () => {
  it.each([...blocks, ...blocksOf('kubernetes.md')].map((block) => [block.split('\n')[0]!.trim(), block]))(
    'has a shell block that bash can parse: %s',
    async (_, block) => {
      await run('bash', ['-n', '-c', block])
    },
  )

  it('has settings that Quipu accepts, for a coordinator, a worker and retention', () => {
    const settings = blocks
      .filter(isSettings)
      .map((block) =>
        Object.fromEntries([...block.matchAll(/^([A-Z_]+)=(.*)$/gm)].map((match) => [match[1]!, match[2]!])),
      )
    expect(settings).toHaveLength(3)
    const [coordinator, worker, retention] = settings
    expect(loadConfig(['--standby'], { ...coordinator, ...retention })).toMatchObject({
      authentication: ['password'],
      timeouts: { archiveAfterMs: 90 * 24 * 3_600_000, archiveQueriesAfterMs: 90 * 24 * 3_600_000 },
    })
    expect(loadConfig([], worker!).coordinators).toHaveLength(2)
    expect(worker!['QUIPU_SHARED_SECRET']).toBe(coordinator!['QUIPU_SHARED_SECRET'])
  })

  it('creates a certificate for each host, signed by its authority', async () => {
    const block = blocks.find((text) => text.startsWith('openssl req -x509'))!
    await run('bash', ['-euc', block], { cwd: folder })
    const authority = new X509Certificate(readFileSync(join(folder, 'ca.pem')))
    for (const host of ['quipu-1.example', 'quipu-2.example', 'worker-1.example', 'worker-2.example']) {
      const certificate = new X509Certificate(readFileSync(join(folder, `${host}.pem`)))
      expect(certificate.verify(authority.publicKey)).toBe(true)
      expect(certificate.checkHost(host)).toBe(host)
    }
  })

  it('copies only files that exist in the project', () => {
    const copied = blocks.flatMap((block) =>
      [...block.matchAll(/\/opt\/quipu\/(deploy\/\S+)/g)].map((match) => match[1]!),
    )
    expect(copied.length).toBeGreaterThan(3)
    for (const path of copied) expect(existsSync(new URL(path, root)), path).toBe(true)
  })
})
