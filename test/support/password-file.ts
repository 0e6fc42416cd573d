import { pbkdf2Sync, randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'

/** Writes a password file as Trino has it, in which all users have the same password; other users may read it. */
export function writePasswordFile(path: string, users: readonly string[], password: string, iterations = 1_000): void {
  const salt = randomBytes(16)
  const hash = pbkdf2Sync(password, salt, iterations, 32, 'sha256').toString('hex')
  const lines = users.map((user) => `${user}:${iterations}:${salt.toString('hex')}:${hash}\n`)
  writeFileSync(path, lines.join(''), { mode: 0o644 })
}
