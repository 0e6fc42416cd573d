import { defineConfig } from 'vitest/config'
import { LongestFirst } from './longest-first.ts'

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 180_000,
    hookTimeout: 240_000,
    // A wait has a long timeout: it proves that something happens, not how soon.
    expect: { poll: { timeout: 60_000 } },
    // On two cores, tests often wait for real servers, so a third worker finds a free core.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
  },
})
