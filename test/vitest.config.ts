import { defineConfig } from 'vitest/config'
import { LongestFirst } from './longest-first.ts'

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 180_000,
    hookTimeout: 240_000,
    // Waits are for what must happen, not for how soon.
    expect: { poll: { timeout: 60_000 } },
    // Two cores, real servers: of two files at once one waits often enough that a third finds a core.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
  },
})
