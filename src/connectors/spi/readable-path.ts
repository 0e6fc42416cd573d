import { EngineError } from '../../shared/engine-error.ts'

/**
 * Readers of DuckDB take paths for patterns. Most can be written as the pattern of themselves alone; one with a backslash
 * cannot: that is taken for an escape, and for the end of a folder's name.
 * @param what is told to be unreadable: `Table 's.t'`
 * @throws EngineError NOT_SUPPORTED
 */
export function checkReadable(path: string, what: string): void {
  if (!path.includes('\\') || !/[*?[]/.test(path)) return
  throw new EngineError(
    'NOT_SUPPORTED',
    `${what} cannot be read: its path has a backslash and one of * ? [, which is a pattern of other paths to the engine`,
  )
}
