import type { BoundedWork } from './bounded-work.ts'
import type { PasswordBook } from './password-file.ts'
import { matches, type PasswordHash } from './password-hash.ts'
import type { PasswordVerifier } from './password-authenticator.ts'

/**
 * Verifies passwords of a file.
 * @param book returns the passwords that are in force
 * @param work limits how many are hashed at once, since hashing is slow
 */
export function createPasswordFileVerifier(
  book: () => PasswordBook,
  work: BoundedWork,
  compare: (password: string, hash: PasswordHash) => Promise<boolean> = matches,
): PasswordVerifier {
  return {
    version: book,
    knows: (user) => book().users.has(user),
    markOf: (user) => book().markOf(user),
    check(user, password, network) {
      const { hash, known } = book().hashOf(user)
      const matching = work.run(network, () => compare(password, hash))
      if (!matching) return { kind: 'busy' }
      return matching.then((same) => ({ kind: same && known ? 'right' : 'wrong' }))
    },
  }
}
