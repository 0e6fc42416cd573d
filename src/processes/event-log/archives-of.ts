import { join } from 'node:path'
import type { Config } from '../../config/load-config.ts'
import { Archive } from '../../events/archive/archive.ts'
import { isQueryId } from '../../shared/ids.ts'

/** One a folder: whoever rewrites its files in this process waits for the others. */
const archives = new Map<string, Archive>()

/** The archives of a configuration, by the log's id. */
export function archivesOf(config: Config): (logId: string) => Archive {
  const root = config.archiveFolder ?? join(config.dataDir, 'archive')
  return (logId) => {
    const made = new Archive({ root, logId, ends: isQueryId })
    const known = archives.get(made.folder)
    if (known) return known
    archives.set(made.folder, made)
    return made
  }
}
