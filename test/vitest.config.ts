import { defineConfig } from 'vitest/config'
import { LongestFirst } from './longest-first.ts'

/** Options of every test file. */
const everywhere = {
  testTimeout: 240_000,
  hookTimeout: 240_000,
  // A wait has a long timeout: it proves that something happens, not how soon.
  expect: { poll: { timeout: 60_000 } },
}

/** Files whose tests only talk to servers: they share processes. `erasure` changes variables of its process. */
const SERVERS = ['test/e2e/!(erasure).e2e.test.ts']

/** Files whose tests start programs or change their process: each of these files runs in a process of its own. */
const PROGRAMS = [
  'test/**/*.{e2e,int}.test.ts',
  'test/{deploy,supervisor,support,ui}/**/*.test.ts',
  // They start engines, or use DuckDB in this process as an engine does.
  'test/execution/engine/{cancel,death,engine-pool,hostile,pool-life,pressure,sandbox,statement-text,statement-wall,wall-mutations}.test.ts',
  'test/execution/worker/{engine-loss,page-store,pipelines,task,task-manager,write-task}.test.ts',
  // They make templates, which a process does only before its first statement.
  'test/sql/functions/{approximate,evaluated-once,every-rendering}.test.ts',
  'test/duckdb/text/sql.test.ts',
  // It replaces a module of Node for the files of `src/events`, which a process loads only once.
  'test/events/partition-writer.test.ts',
]

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    // Tests often wait for real servers, so more workers than cores are at work. Servers of one file take up to 2 GB.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          ...everywhere,
          name: 'servers',
          include: SERVERS,
          setupFiles: ['test/support/new-file.ts'],
          isolate: false,
        },
      },
      { test: { ...everywhere, name: 'programs', include: PROGRAMS, exclude: SERVERS } },
      {
        test: {
          ...everywhere,
          name: 'functions',
          include: ['test/**/*.test.ts'],
          exclude: PROGRAMS,
          // Files share processes, so that each process loads `src` and the libraries once.
          isolate: false,
        },
      },
    ],
  },
})
