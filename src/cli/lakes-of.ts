import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import type { Config } from '../config/load-config.ts'

/** A folder of tables that is its operator's. */
export interface Lake {
  readonly catalog: string
  /** Absolute. */
  readonly folder: string
  readonly readOnly: boolean
}

const lakeSchema = z.object({
  connector: z.enum(['lake', 'memory']),
  location: z.string(),
  readOnly: z.boolean().default(false),
})

/** The folders that catalogs name. Files that are none are passed over: who loads them says what is wrong. */
export function lakesOf({ catalogDir }: Pick<Config, 'catalogDir'>): Lake[] {
  return filesOf(catalogDir).flatMap((file) => {
    const parsed = lakeSchema.safeParse(parse(join(catalogDir, file)))
    if (!parsed.success) return []
    const { location, readOnly } = parsed.data
    return [{ catalog: file.slice(0, -'.json'.length), folder: resolve(catalogDir, location), readOnly }]
  })
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
