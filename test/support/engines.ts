import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createEnginePool } from '../../src/execution/engine/engine-pool.ts'
import type {
  EngineEvent,
  EnginePool,
  EngineResult,
  EngineRun,
  EngineSettings,
  EngineStatement,
} from '../../src/execution/engine/engine.ts'

export interface TestPool extends AsyncDisposable {
  readonly pool: EnginePool
  readonly settings: EngineSettings
  /** A folder that DuckDB may read, with a trailing slash. */
  readonly data: string
  readonly events: EngineEvent[]
  /** Runs a SELECT of one column, rows as text, with sensible defaults: shared, inline up to 1 MB, no profile. */
  run(sql: string, statement?: Partial<EngineStatement>): EngineRun
  /** The rows of an inline statement, parsed. */
  rows(sql: string, statement?: Partial<EngineStatement>): Promise<unknown[]>
  /** The rows of a streamed statement, as text of lines. */
  stream(sql: string, statement?: Partial<EngineStatement>): Promise<{ text: string; result: EngineResult }>
}

const MB = 2 ** 20

/** A started pool over temporary folders, with deadlines that suit a busy machine. By default without a spare engine. */
export async function openTestPool(overrides: Partial<EngineSettings> = {}): Promise<TestPool> {
  const root = mkdtempSync(join(tmpdir(), 'quipu-engines-'))
  const data = join(root, 'data', '/')
  const events: EngineEvent[] = []
  const settings: EngineSettings = {
    folder: join(root, 'engines'),
    spillFolder: join(root, 'spill'),
    allowedDirectories: [data],
    memoryLimitBytes: 500 * MB,
    maxSpillBytes: 500 * MB,
    cores: 2,
    sharedConnections: 16,
    dedicatedConnections: 2,
    prepareDeadlineMs: 15_000,
    interruptToKillMs: 150,
    beatMs: 250,
    deadAfterMs: 10_000,
    spareAfterMs: 3_600_000,
    functionsModule: new URL('./engine-module.mjs', import.meta.url).href,
    translateError: (text) => new Error(text),
    onEvent: (event) => events.push(event),
    ...overrides,
  }
  const pool = createEnginePool(settings)
  await pool.start()

  const run = (sql: string, statement: Partial<EngineStatement> = {}): EngineRun =>
    pool.run({
      id: 'test',
      query: { sql, scans: [], row: { kind: 'text' } },
      placement: 'shared',
      risky: false,
      profile: false,
      cachePrepared: false,
      output: { kind: 'inline', maxBytes: MB },
      ...statement,
    })

  return {
    pool,
    settings,
    data,
    events,
    run,
    async rows(sql, statement) {
      const result = await run(sql, statement).done
      return JSON.parse(`[${result.inline!.toString()}]`) as unknown[]
    },
    async stream(sql, statement) {
      const parts: Buffer[] = []
      const output = { kind: 'stream', onRows: (lines: Buffer) => void parts.push(Buffer.from(lines)) } as const
      const result = await run(sql, { placement: 'dedicated', output, ...statement }).done
      return { text: Buffer.concat(parts).toString(), result }
    },
    async [Symbol.asyncDispose]() {
      await pool.stop()
      rmSync(root, { recursive: true, force: true })
    },
  }
}
