import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { SHADOW_BEGINNING, shadowPositionSchema, type ShadowPosition } from '../replay/shadow/mirror-queue.ts'
import { hasCode } from '../shared/node-error.ts'
import { parseJson } from '../shared/parse-json.ts'
import { writePrivate } from './replay-reports.ts'

/** The position of a shadow, in a file beside its verdicts. */
export interface PositionFile {
  /** The saved position, or the beginning. @throws Error with one line for the position of another shadow */
  read(): ShadowPosition
  /** Replaces the file at once: a killed process leaves the earlier position or this one. */
  save(position: ShadowPosition): void
}

/**
 * @param path undefined: nothing is saved
 * @param servers origins of the two servers
 */
export function openPositionFile(
  path: string | undefined,
  servers: { readonly from: string; readonly to: string },
): PositionFile {
  const schema = z.object({ from: z.literal(servers.from), to: z.literal(servers.to), position: shadowPositionSchema })
  return {
    read() {
      const text = path === undefined ? undefined : readIfThere(path)
      if (text === undefined) return SHADOW_BEGINNING
      const saved = schema.safeParse(parseJson(text))
      if (saved.success) return saved.data.position
      throw new Error(
        `${path} is not the position of a shadow from ${servers.from} to ${servers.to}: name another file`,
      )
    },
    save(position) {
      if (path === undefined) return
      writePrivate(path, JSON.stringify({ ...servers, position }))
    },
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}
