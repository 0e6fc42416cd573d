import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../config/load-config.ts'
import { syncNames } from '../../events/archive/durable-files.ts'
import { createParquetEngine } from '../../readmodels/archive/parquet-engine.ts'
import type { ArchivedFiles } from '../../readmodels/history/read-archive.ts'

/** Files of a log's queries that have left the read models; stored beside the archive of the log itself. */
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

/**
 * Makes the query files of a log those of the log that continues it. The call may be interrupted at any point and
 * repeated.
 * @throws errors of the disk
 */
export async function takeOverQueryArchive(config: Config, before: string, logId: string): Promise<void> {
  const [from, to] = [queryArchiveFolder(config, before), queryArchiveFolder(config, logId)]
  if (!existsSync(from)) return
  await mkdir(to, { recursive: true, mode: 0o700 })
  // File by file: a coordinator that was started too early may have begun the folder.
  for (const name of await readdir(from)) await rename(join(from, name), join(to, name))
  await syncNames(to)
  await rmdir(from)
}
