import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../config/load-config.ts'
import { Archive } from '../../events/archive/archive.ts'
import { LogUnavailable } from '../../events/event-log.ts'
import { isQueryId } from '../../shared/ids.ts'
import { hasCode } from '../../shared/node-error.ts'

/** One archive per folder, so that rewrites of its files in this process wait for each other. */
const archives = new Map<string, Archive>()

/** The folder of a configuration's archives, one subfolder for each log. */
function archiveRoot(config: Config): string {
  return config.archiveFolder ?? join(config.dataDir, 'archive')
}

/** The logs that have an archive in this folder; none if the folder is missing. @throws LogUnavailable */
export async function archivedLogs(config: Config): Promise<readonly string[]> {
  const root = archiveRoot(config)
  const names = await readdir(root).catch((cause: Error) => {
    if (hasCode(cause, 'ENOENT')) return []
    throw new LogUnavailable(`The archive at ${root} cannot be read: ${cause.message}`, { cause })
  })
  return names.filter((name) => /^[0-9a-f-]{36}$/.test(name))
}

/** The archives of a configuration, by the log's id. */
export function archivesOf(config: Config): (logId: string) => Archive {
  const root = archiveRoot(config)
  return (logId) => {
    const made = new Archive({ root, logId, canEnd: isQueryId })
    const known = archives.get(made.folder)
    if (known) return known
    archives.set(made.folder, made)
    return made
  }
}
