import { join } from 'node:path'
import type { Finding } from '../../events/audit/finding.ts'
import type { QueryRows } from '../../events/projection.ts'
import { isArchivedName } from '../archive/archived-tables.ts'
import { fileOf, readArchivedQueries } from '../archive/query-periods.ts'
import { digestOf } from '../archive/write-files.ts'

/** Checks the files of the queries that left the read models against their recorded digests. */
export async function checkQueryFiles(
  query: QueryRows,
  folder: string,
  onFinding: (finding: Finding) => void,
): Promise<void> {
  const { periods } = await readArchivedQueries(query)
  for (const period of periods)
    for (const [name, { sha256 }] of Object.entries(period.tables)) {
      if (!isArchivedName(name)) continue
      const path = join(folder, period.folder, fileOf(name))
      const digest = await digestOf(path).catch(() => undefined)
      if (digest === sha256) continue
      const how = digest === undefined ? 'cannot be read' : 'was changed after it was written'
      onFinding({ kind: 'archive', what: `${path} ${how}: quipu rebuild restores the rows of its queries` })
    }
}
