import { join } from 'node:path'
import type { Config } from '../../config/load-config.ts'
import { createParquetEngine } from '../../readmodels/archive/parquet-engine.ts'
import type { ArchivedFiles } from '../../readmodels/history/read-archive.ts'

/** Files of the queries of a log that have left the read models, beside what has left the log itself. */
export interface OpenQueryArchive extends ArchivedFiles {
  close(): Promise<void>
}

export function queryArchiveFolder(config: Config, logId: string): string {
  return join(config.archiveFolder ?? join(config.dataDir, 'archive'), logId, 'queries')
}

export function queryArchiveOf(config: Config, logId: string): OpenQueryArchive {
  const folder = queryArchiveFolder(config, logId)
  const engine = createParquetEngine(folder)
  return { engine, folder, limitMs: config.timeouts.historyReadMs, close: () => engine.close() }
}
