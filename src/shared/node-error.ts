/** The code of an error of Node or of the system, `ENOENT`; undefined for any other value. */
export function nodeCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined
  return error.code
}

export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  const code = nodeCode(error)
  return code !== undefined && codes.includes(code)
}
