import { expect } from 'vitest'
import { createFileFactsCache } from '../../src/connectors/lake/file-facts.ts'
import { createLakeFolders } from '../../src/connectors/lake/lake-folders.ts'
import { createLakeWriter, type LakeWriterDeps } from '../../src/connectors/lake/lake-writer.ts'
import type { PreparedWrite } from '../../src/connectors/spi/table-writer.ts'
import { duckdbTypeOf } from '../../src/processes/connector-factories.ts'

/**
 * Commits in a new writer of the lake, which dies before its step number `fatal`.
 * @param atStep called before each step
 * @returns whether it died
 */
export async function commitUntil(
  fatal: number,
  prepared: PreparedWrite,
  { location, inspect }: Pick<LakeWriterDeps, 'location' | 'inspect'>,
  atStep: () => Promise<void> = async () => {},
): Promise<boolean> {
  let steps = 0
  const writer = createLakeWriter({
    catalog: 'lake',
    location,
    folders: createLakeFolders(location),
    cache: createFileFactsCache(location, inspect),
    inspect,
    duckdbType: duckdbTypeOf,
    async onStep() {
      await atStep()
      if (++steps === fatal) throw new Error('killed')
    },
  })
  return writer.commit(prepared).then(
    () => false,
    (error: Error) => {
      expect(error.message).toBe('killed')
      return true
    },
  )
}
