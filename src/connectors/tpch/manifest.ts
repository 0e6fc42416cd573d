import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { EngineError } from '../../shared/engine-error.ts'

const manifestSchema = z.object({
  /** The TPC-H scale factor of the files. */
  scale: z.number().positive(),
  /** Every table's files, with the facts of their Parquet footers. */
  tables: z.record(
    z.string(),
    z.array(
      z.object({
        file: z.string().regex(/^[\w.-]+$/),
        size: z.number().int(),
        rowGroups: z.array(z.object({ rows: z.number().int(), columnBytes: z.record(z.string(), z.number().int()) })),
      }),
    ),
  ),
})
export type TpchManifest = z.infer<typeof manifestSchema>

/**
 * The manifest of a schema's folder, written beside the generated files by `etc/tpch/write-manifest.mjs`, so that
 * planning does not read the files.
 * @throws EngineError CONFIGURATION_INVALID when it cannot be read
 */
export function readManifest(folder: string): TpchManifest | undefined {
  const path = join(folder, 'manifest.json')
  if (!statSync(path, { throwIfNoEntry: false })) return undefined
  try {
    return manifestSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch (cause) {
    throw new EngineError('CONFIGURATION_INVALID', `'${path}' is not a manifest of TPC-H files`, { cause })
  }
}
