import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** How to reach the embedded Postgres of a running data folder. */
export function embeddedConnection(dataDir) {
  const lines = readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')
  return { host: lines[4], port: Number(lines[3]), user: 'quipu', database: 'postgres' }
}
