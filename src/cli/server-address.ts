import { userInfo } from 'node:os'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'

/**
 * The coordinator that a client command talks to: `--server`, else QUIPU_SERVER, else QUIPU_PORT on this machine.
 * @throws ExitError 64 when the address is invalid
 */
export function serverOf(flag: string | undefined): string {
  const text = flag ?? process.env['QUIPU_SERVER'] ?? `http://127.0.0.1:${process.env['QUIPU_PORT'] ?? 8080}`
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw new ExitError(exitCodes.configuration, `'${text}' is not an address of the form http://host:port`)
  }
  return url.href
}

export function userName(): string {
  try {
    return userInfo().username
  } catch {
    // A user in a container need not have a name.
    return 'anonymous'
  }
}
