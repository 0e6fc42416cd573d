import { defineConfig } from 'vitest/config'

const figures = process.env['QUIPU_TRINO_FIGURES'] === '1'

/** The tests of delegation with a real Trino. They are not part of `npm test`: they need 3 GB of memory and a Java 24. */
export default defineConfig({
  root: new URL('../..', import.meta.url).pathname,
  test: {
    include: [figures ? 'test/trino/figures.ts' : 'test/trino/*.trino.ts'],
    globalSetup: ['test/support/global-setup.ts', 'test/trino/start-trino.ts'],
    testTimeout: 300_000,
    hookTimeout: 600_000,
    // All files use one Trino, which needs the processors.
    fileParallelism: false,
  },
})
