import { readdirSync } from 'node:fs'
import { defineConfig } from 'vitest/config'
import { MixedOrder } from './file-order.ts'
import { sharesProcess } from './shared-process.ts'

const files = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' }).filter((file) =>
  file.endsWith('.test.ts'),
)
const filesThat = (are: (file: string) => boolean): string[] => files.filter(are).map((file) => `test/${file}`)

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 180_000,
    hookTimeout: 240_000,
    // Waits are for what must happen, not for how soon.
    expect: { poll: { timeout: 60_000 } },
    // Two cores, real servers: of two files at once one waits often enough that a third finds a core.
    maxWorkers: 3,
    sequence: { sequencer: MixedOrder },
    projects: [
      { extends: true, test: { name: 'own process', include: filesThat((file) => !sharesProcess(file)) } },
      { extends: true, test: { name: 'shared process', include: filesThat(sharesProcess), isolate: false } },
    ],
  },
})
