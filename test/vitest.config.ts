import { defineConfig } from 'vitest/config'
import { LongestFirst } from './longest-first.ts'

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 90_000,
    hookTimeout: 120_000,
    // Waits are for what must happen, not for how soon.
    expect: { poll: { timeout: 20_000 } },
    // Two cores, real servers: more files at once only makes every one of them slow.
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
  },
})
