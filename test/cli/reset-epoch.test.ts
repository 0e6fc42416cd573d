import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { readForgottenEpochs } from '../../src/execution/worker/forgotten-epochs.ts'
import { lockDataFolder } from '../../src/supervisor/data-folder-lock.ts'
import { spawnQuipu, temporaryFolder } from '../support/quipu-process.ts'

let folder: ReturnType<typeof temporaryFolder>
let dataDir: string

beforeEach(() => {
  folder = temporaryFolder()
  dataDir = join(folder.path, 'data')
})
afterEach(() => folder.remove())

it('quipu reset-epoch removes the epochs of the stopped workers of a data folder, and nothing else', async () => {
  const files: Record<string, string> = {
    epoch: '5',
    'worker-1/epoch': '{"logs":[{"logId":"a","epoch":7},{"logId":"b","epoch":1}]}',
    'standby-worker-2/epoch': 'nonsense',
  }
  const kept = ['worker-1/node-id', 'tables/epoch']
  for (const [name, text] of [...Object.entries(files), ...kept.map((one) => [one, 'x'] as const)]) {
    mkdirSync(join(dataDir, name, '..'), { recursive: true })
    writeFileSync(join(dataDir, name), text)
  }
  const lock = await lockDataFolder(dataDir)
  const reset = () => spawnQuipu(['reset-epoch', '--data-dir', dataDir]).exit
  expect(await reset()).toEqual({ code: 69, stdout: '', stderr: `quipu: Quipu runs on ${dataDir}: stop it first\n` })
  expect(Object.keys(files).every((name) => existsSync(join(dataDir, name)))).toBe(true)
  lock.release()
  const { code, stdout, stderr } = await reset()
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout.trim().split('\n').toSorted()).toEqual(
    [
      `${join(dataDir, 'epoch')}: forgot epoch 5 of an unnamed log`,
      `${join(dataDir, 'worker-1/epoch')}: forgot epoch 7 of a, epoch 1 of b`,
      `${join(dataDir, 'standby-worker-2/epoch')}: forgot a file without a readable epoch`,
    ].toSorted(),
  )
  expect(Object.keys(files).filter((name) => existsSync(join(dataDir, name)))).toEqual([])
  // The worker reports this when it runs again.
  expect(readForgottenEpochs(join(dataDir, 'worker-1'))).toMatchObject([
    {
      host: hostname(),
      epochs: [
        { logId: 'a', epoch: 7 },
        { logId: 'b', epoch: 1 },
      ],
    },
  ])
  expect(readForgottenEpochs(join(dataDir, 'standby-worker-2'))).toMatchObject([{ epochs: [] }])
  expect(kept.every((name) => existsSync(join(dataDir, name)))).toBe(true)
  expect((await reset()).stdout).toBe(`No worker of ${dataDir} has stored an epoch\n`)
})
