/** A fault of the engine itself, according to DuckDB's text of an error; any other error is about the statement. */
export type EngineFault =
  /** The statement, or all of the engine's statements together, reached the memory limit. */
  | 'memory'
  /** More was spilled than `maxSpillBytes`. */
  | 'spill'
  /** The disk is full. */
  | 'disk'
  /** DuckDB found its instance broken: no further statement would work. */
  | 'broken'
  /** The instance was broken by a statement before this one. */
  | 'broken before'

/** The fault that a text means. The text begins with the kind of error, which a statement's data cannot forge. */
export function faultOf(text: string): EngineFault | undefined {
  if (/^(FATAL|INTERNAL) Error: .*has been invalidated because of a previous/s.test(text)) return 'broken before'
  if (/^(FATAL|INTERNAL) Error/.test(text)) return 'broken'
  if (text.startsWith('Out of Memory Error')) return text.includes("'max_temp_directory_size'") ? 'spill' : 'memory'
  if (/^(std::)?bad_alloc|^Invalid Error: std::bad_alloc/.test(text)) return 'memory'
  if (text.startsWith('IO Error') && text.includes('No space left on device')) return 'disk'
  return undefined
}
