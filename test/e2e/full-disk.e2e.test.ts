import { execFileSync } from 'node:child_process'
import { chmodSync, closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { spawnQuipu, temporaryFolder, waitUntil, type QuipuProcess } from '../support/quipu-process.ts'
import { post, raw, run, trinoHeaders } from '../support/statement-client.ts'

/*
 * The data folder is on a file system of its own that is really full. This needs a mount: root, and a kernel that
 * allows it.
 */

let folder: ReturnType<typeof temporaryFolder>
let disk: string
let quipu: QuipuProcess

function mounted(): boolean {
  folder = temporaryFolder()
  disk = join(folder.path, 'disk')
  mkdirSync(disk)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=400m,mode=0711', 'tmpfs', disk], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const available = mounted()
if (!available) console.warn('SKIPPED: a full disk (no file system can be mounted here: not root, or not allowed)')

afterAll(async () => {
  if (available) execFileSync('umount', ['-l', disk])
  await folder.remove()
})

/** Writes until there is no room for another byte. @returns a function that frees the room */
function fill(): () => void {
  const path = join(disk, 'filler')
  const file = openSync(path, 'w')
  for (const bytes of [1 << 20, 4096, 1]) {
    const block = Buffer.alloc(bytes, 1)
    try {
      while (writeSync(file, block) > 0);
    } catch (error) {
      expect((error as NodeJS.ErrnoException).code).toBe('ENOSPC')
    }
  }
  closeSync(file)
  return () => rmSync(path)
}

describe.runIf(available)('The server on a full disk', () => {
  beforeAll(async () => {
    chmodSync(folder.path, 0o711)
    quipu = spawnQuipu(['start', '--port', '0', '--data-dir', join(disk, 'data')], {
      // A floor that fits this small disk.
      env: { QUIPU_LOG_LEVEL: 'error', QUIPU_DISK_FLOOR_BYTES: '64MB', QUIPU_RESTART_BACKOFF_MAX_MS: '500ms' },
      productWaits: true,
    })
    await quipu.url
  }, 240_000)
  afterAll(async () => {
    quipu.signal('SIGTERM')
    await quipu.exit
  }, 240_000)

  it('ends a statement that needs room for pages, and answers one that needs none', { timeout: 240_000 }, async () => {
    const url = await quipu.url
    // The whole disk is below the floor of the page store: 5 %, and 2 GB.
    const { error } = await run(url, 'SELECT orderkey, comment FROM lineitem')
    expect(error).toMatchObject({ errorName: 'OUT_OF_SPILL_SPACE' })
    expect((await run(url, 'SELECT 1')).rows).toEqual([[1]])
  })

  it(
    'refuses statements with 503 while the disk is full, and takes them again by itself when there is room',
    { timeout: 240_000 },
    async () => {
      const url = await quipu.url
      const before = await run(url, "SELECT 'before' AS word")
      const free = fill()
      const ask = () => post(url, 'SELECT 2', { ...trinoHeaders, accept: 'application/json' })
      let refused = await ask()
      await waitUntil('statements are refused for want of room', async () => {
        refused = await ask()
        return refused.status === 503 && refused.text.includes('disk')
      })
      expect(refused.headers['retry-after']).toBe('1')
      expect(refused.headers['content-type']).toContain('application/problem+json')
      free()
      await waitUntil('statements are taken again', async () => (await post(url, 'SELECT 3')).status === 200, 60_000)
      expect((await run(url, 'SELECT 4')).rows).toEqual([[4]])
      await waitUntil(
        'the history is whole',
        async () => (await raw(`${url}/v1/query/${before.id}`)).status === 200,
        30_000,
      )
    },
  )
})
