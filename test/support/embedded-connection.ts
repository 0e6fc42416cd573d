import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'

/** The connection to the embedded Postgres of a running data folder, from its pid file (line 4 port, 5 socket folder). */
export function embeddedConnection(dataDir: string): pg.ClientConfig {
  const lines = readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')
  return { host: lines[4]!, port: Number(lines[3]), user: 'quipu', database: 'postgres' }
}
