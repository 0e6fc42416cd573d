import { readFileSync } from 'node:fs'

/** The version in package.json, two folders up from here in `src/` and `dist/` alike. */
export const version: string = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
).version
