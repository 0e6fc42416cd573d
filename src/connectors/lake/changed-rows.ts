import { z } from 'zod'
import { EngineError } from '../../shared/engine-error.ts'
import type { ConnectorContext } from '../spi/connector.ts'
import type { TableChange, WrittenFile } from '../spi/table-writer.ts'

export type AskFiles = ConnectorContext['inspect']

type Operation = Extract<TableChange, { kind: 'changeRows' }>['operation']

const countsSchema = z.object({
  change: z.coerce.number().int(),
  file: z.coerce.number().int().nullable(),
  removed: z.coerce.number().int(),
  live: z.coerce.number().int(),
  acting: z.coerce.number().int(),
})

/**
 * The files of a change of rows, with the numbers of rows that they remove and add.
 * @param paths of the files, absolute
 * @throws EngineError MERGE_TARGET_ROW_MULTIPLE_MATCHES
 */
export async function describeChanges(
  operation: Operation,
  files: readonly WrittenFile[],
  paths: readonly string[],
  inspect: AskFiles,
): Promise<readonly WrittenFile[]> {
  if (files.length === 0) return files
  // UPDATE and DELETE find each row once.
  const mayRepeat = operation === 'MERGE'
  if (mayRepeat) {
    const [repeated] = await inspect({ kind: 'repeatedChanges', paths })
    if (repeated) {
      const message = 'One MERGE target table row matched more than one source row'
      throw new EngineError('MERGE_TARGET_ROW_MULTIPLE_MATCHES', message)
    }
  }
  const counts = z.array(countsSchema).parse(await inspect({ kind: 'changedRows', paths, mayRepeat }))
  return files.map((file, index) => {
    const own = counts.filter(({ change }) => change === index)
    const removed = own.flatMap((count) => (count.file === null || count.removed === 0 ? [] : [{ file: count.file, rows: count.removed }])) // prettier-ignore
    const live = own.reduce((sum, count) => sum + count.live, 0)
    return { ...file, change: { live, acting: own.reduce((sum, { acting }) => sum + acting, 0), removed } }
  })
}
