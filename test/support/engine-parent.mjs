// A process with a pool of two working engines. It prints their pids and waits to be killed.
import { createEnginePool } from '../../dist/execution/engine/engine-pool.js'

const folder = process.argv[2]
const pool = createEnginePool({
  folder: `${folder}/engines`,
  spillFolder: `${folder}/spill`,
  allowedDirectories: [],
  memoryLimitBytes: 500 * 2 ** 20,
  maxSpillBytes: 500 * 2 ** 20,
  cores: 1,
  sharedConnections: 4,
  dedicatedConnections: 2,
  prepareDeadlineMs: 2500,
  interruptToKillMs: 150,
  beatMs: 250,
  deadAfterMs: 2000,
  spareAfterMs: 3_600_000,
  functionsModule: new URL('./engine-module.mjs', import.meta.url).href,
  translateError: (text) => new Error(text),
})
await pool.start()
for (const placement of ['shared', 'dedicated']) {
  pool.run({
    id: placement,
    query: {
      sql: `SELECT count(*)::VARCHAR FROM range(100000) a(i), range(100000) b(j) WHERE i + j = 7`,
      scans: [],
      row: { kind: 'text' },
    },
    placement,
    risky: false,
    profile: false,
    cachePrepared: false,
    output: { kind: 'inline', maxBytes: 1000 },
  })
}
const timer = setInterval(() => {
  const busy = pool.children().filter(({ state }) => state === 'busy')
  if (busy.length < 2) return
  clearInterval(timer)
  console.log(JSON.stringify(busy.map(({ pid }) => pid)))
  setInterval(() => undefined, 1000)
}, 20)
