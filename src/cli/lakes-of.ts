import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import type { Config } from '../config/load-config.ts'

/** A folder of tables that belongs to the operator. */
export interface Lake {
  readonly catalog: string
  readonly connector: 'lake' | 'memory'
  /** Absolute. */
  readonly folder: string
  readonly readOnly: boolean
}

const lakeSchema = z.object({
  connector: z.enum(['lake', 'memory']),
  location: z.string(),
  readOnly: z.boolean().default(false),
})

/** The folders that catalogs name. Invalid catalog files are skipped: the code that loads them reports the error. */
export function lakesOf({ catalogDir }: Pick<Config, 'catalogDir'>): Lake[] {
  return filesOf(catalogDir).flatMap((file) => {
    const parsed = lakeSchema.safeParse(parse(join(catalogDir, file)))
    if (!parsed.success) return []
    const { connector, location, readOnly } = parsed.data
    return [{ catalog: nameOf(file), connector, folder: resolve(catalogDir, location), readOnly }]
  })
}

const memorySchema = z.object({ connector: z.literal('memory'), location: z.string().optional() })

/** The `memory` catalogs whose tables are in the common folder. */
export function memoryCatalogs({ catalogDir }: Pick<Config, 'catalogDir'>): string[] {
  return filesOf(catalogDir).flatMap((file) => {
    const parsed = memorySchema.safeParse(parse(join(catalogDir, file)))
    return parsed.success && parsed.data.location === undefined ? [nameOf(file)] : []
  })
}

/** The folder of tables of each `memory` catalog, absolute. */
export function memoryFolders({ catalogDir }: Pick<Config, 'catalogDir'>, tablesDir: string): string[] {
  return filesOf(catalogDir).flatMap((file) => {
    const parsed = memorySchema.safeParse(parse(join(catalogDir, file)))
    if (!parsed.success) return []
    const { location } = parsed.data
    return [location === undefined ? join(tablesDir, nameOf(file)) : resolve(catalogDir, location)]
  })
}

function nameOf(file: string): string {
  return file.slice(0, -'.json'.length)
}

function filesOf(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((file) => file.endsWith('.json'))
      .sort()
  } catch {
    return []
  }
}

function parse(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}
