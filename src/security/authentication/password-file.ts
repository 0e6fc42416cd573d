import { createHmac } from 'node:crypto'
import { linesOf } from './file-lines.ts'
import { isUserName, NO_USER_NAME } from './user-name.ts'
import { parsePasswordHash, type PasswordHash } from './password-hash.ts'

/** The passwords of a file. */
export interface PasswordBook {
  readonly users: ReadonlyMap<string, PasswordHash>
  /**
   * The hash that a password of this user is compared with. For an unknown user it is the hash of another user, always
   * the same, so that the time does not reveal whether the user exists. `known`: whether a match counts.
   */
  hashOf(user: string): { readonly hash: PasswordHash; readonly known: boolean }
  /** A digest of the user's line. */
  markOf(user: string): string | undefined
}

/** A hash of no user, for comparison when the file is empty. */
const NOBODYS: PasswordHash = parsePasswordHash('$2b$10$abcdefghijklmnopqrstuuCpuTTnCeMuA65KPC8WEnjCQ6RQWrxAK')

/**
 * Parses Trino's form: one line for each user, `user:hash`.
 * @param key chooses the hashes for unknown users, and digests lines
 * @throws Error that names the line and quotes nothing of it
 */
export function parsePasswordFile(text: string, key: Buffer): PasswordBook {
  const users = new Map<string, PasswordHash>()
  const marks = new Map<string, string>()
  const digest = (one: string): Buffer => createHmac('sha256', key).update(one).digest()
  for (const { number, line } of linesOf(text)) {
    const at = line.indexOf(':')
    const wrong = (what: string): Error => new Error(`Line ${number}: ${what}`)
    if (at <= 0) throw wrong('the line must have the form user:hash')
    const user = line.slice(0, at)
    if (!isUserName(user)) throw wrong(`the name ${NO_USER_NAME}`)
    if (users.has(user)) throw wrong('the user already has a line')
    try {
      users.set(user, parsePasswordHash(line.slice(at + 1)))
      marks.set(user, digest(line).toString('base64url', 0, 16))
    } catch (error) {
      throw wrong((error as Error).message)
    }
  }
  const hashes = [...users.values()]
  return {
    users,
    hashOf(user) {
      // Computed for known users too, so that both cases take the same time.
      const drawn = digest(user).readUInt32BE() % Math.max(1, hashes.length)
      const hash = users.get(user)
      return { hash: hash ?? hashes[drawn] ?? NOBODYS, known: hash !== undefined }
    },
    markOf: (user) => marks.get(user),
  }
}
