import { z } from 'zod'
import { parseManifest, unreadable, type Manifest } from './manifest.ts'
import { parseFirstFormat } from './manifest-format-1.ts'

const formatSchema = z.object({ format: z.number() })

/**
 * The manifest of any format that Quipu has ever written, in today's form.
 * @param path of the file, for errors
 * @param folder of the object, relative to the location
 * @throws EngineError HIVE_BAD_DATA
 */
export function manifestOfText(text: string, path: string, folder: string): Manifest {
  try {
    const json: unknown = JSON.parse(text)
    return formatSchema.parse(json).format === 1 ? parseFirstFormat(json, folder) : parseManifest(json)
  } catch (cause) {
    throw unreadable(path, cause)
  }
}
