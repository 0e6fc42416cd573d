import { EngineError } from '../../shared/engine-error.ts'

/**
 * Refuses a path that no pattern can name. DuckDB's readers treat paths as patterns. Most paths can be written as a
 * pattern that matches only them. A path with a backslash cannot: it is read as an escape, and as the end of a folder's
 * name.
 * @param what names the object in the error: `Table 's.t'`
 * @throws EngineError NOT_SUPPORTED
 */
export function checkReadable(path: string, what: string): void {
  if (!path.includes('\\') || !/[*?[]/.test(path)) return
  throw new EngineError(
    'NOT_SUPPORTED',
    `${what} cannot be read: its path has a backslash and one of * ? [, which is a pattern of other paths to the engine`,
  )
}
