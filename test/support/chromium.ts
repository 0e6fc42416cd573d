import { existsSync } from 'node:fs'

/** The browser of Debian. */
export const CHROMIUM = '/usr/bin/chromium'

/**
 * Whether a browser is installed. Without a browser the tests that need it are skipped with a message.
 * @param what the use of the browser in the tests, for the message: 'no client logs in through one'
 * @throws Error under CI=true, where no test may be skipped
 */
export function hasChromium(what: string): boolean {
  if (existsSync(CHROMIUM)) return true
  const line = `SKIPPED: no browser, so ${what} (apt-get install chromium)`
  if (process.env['CI'] === 'true') throw new Error(line)
  process.stderr.write(`${line}\n`)
  return false
}
