import { pbkdf2Sync, randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'

/** A line of a password file in the format of Trino. */
export function passwordLine(user: string, password: string, iterations = 1_000): string {
  const salt = randomBytes(16)
  const hash = pbkdf2Sync(password, salt, iterations, 32, 'sha256').toString('hex')
  return `${user}:${iterations}:${salt.toString('hex')}:${hash}\n`
}

/** Writes a password file in which all users have the same password. Other users of the machine may read it. */
export function writePasswordFile(path: string, users: readonly string[], password: string, iterations = 1_000): void {
  writeFileSync(path, users.map((user) => passwordLine(user, password, iterations)).join(''), { mode: 0o644 })
}
