import { existsSync } from 'node:fs'

/** Debian's browser. */
export const CHROMIUM = '/usr/bin/chromium'

/**
 * Whether a browser is installed. Without one the tests that need it are skipped, with a line that says so.
 * @param what the tests do with it, for that line: 'no client logs in through one'
 * @throws Error under CI=true, where no test may be skipped
 */
export function hasChromium(what: string): boolean {
  if (existsSync(CHROMIUM)) return true
  const line = `SKIPPED: no browser, so ${what} (apt-get install chromium)`
  if (process.env['CI'] === 'true') throw new Error(line)
  process.stderr.write(`${line}\n`)
  return false
}
