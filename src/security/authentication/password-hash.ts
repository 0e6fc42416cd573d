import { pbkdf2, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

/** A hash in the form of Trino's password files. PBKDF2 may also use SHA-256, which Trino 476 does not know. */
export type PasswordHash =
  | { readonly kind: 'bcrypt'; readonly text: string }
  | { readonly kind: 'pbkdf2'; readonly iterations: number; readonly salt: Buffer; readonly hash: Buffer }

const LEAST_COST = 8
const LEAST_ITERATIONS = 1_000
/** The cost of one password has an upper limit too: a higher cost would keep all users from logging in. */
const MOST_COST = 16
const MOST_ITERATIONS = 10_000_000

/** Parses a hash. @throws Error that says what is wrong and quotes nothing */
export function parsePasswordHash(text: string): PasswordHash {
  const bcrypt = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/.exec(text)
  if (bcrypt) {
    const cost = Number(bcrypt[1])
    if (cost < LEAST_COST || cost > MOST_COST)
      throw new Error(`The cost of a bcrypt hash must be from ${LEAST_COST} to ${MOST_COST}`)
    return { kind: 'bcrypt', text }
  }
  const parts = /^(\d{1,9}):((?:[0-9a-f]{2})+):((?:[0-9a-f]{2})+)$/.exec(text)
  if (!parts) throw new Error('Neither a bcrypt hash nor iterations:salt:hash of PBKDF2')
  const iterations = Number(parts[1])
  if (iterations < LEAST_ITERATIONS || iterations > MOST_ITERATIONS)
    throw new Error(`The iterations of PBKDF2 must be from ${LEAST_ITERATIONS} to ${MOST_ITERATIONS}`)
  const hash = Buffer.from(parts[3]!, 'hex')
  // A longer hash is made in pieces, each of which takes all iterations.
  if (iterations * (Math.ceil(hash.length / 32) + Math.ceil(hash.length / 20)) > 3 * MOST_ITERATIONS)
    throw new Error('A PBKDF2 hash of this length must have fewer iterations')
  if (hash.length < 16 || hash.length > 512) throw new Error('A PBKDF2 hash must have 16 to 512 bytes')
  return { kind: 'pbkdf2', iterations, salt: Buffer.from(parts[2]!, 'hex'), hash }
}

/** bcrypt reads only this many bytes, so a longer password would match another one. */
const BCRYPT_BYTES = 72

const derive = promisify(pbkdf2)

/** Compares off the event loop. The time depends on the hash alone, not on whether the password is right. */
export async function matches(password: string, hash: PasswordHash): Promise<boolean> {
  if (hash.kind === 'bcrypt') {
    // The library is loaded where there is such a hash.
    const { verify } = await import('@node-rs/bcrypt')
    const same = await verify(password, hash.text)
    return same && Buffer.byteLength(password) <= BCRYPT_BYTES && !password.includes('\0')
  }
  const { salt, iterations, hash: wanted } = hash
  // The file does not say which digest was used. Trino 476 knows SHA-1 alone.
  const sha256 = await derive(password, salt, iterations, wanted.length, 'sha256')
  const sha1 = await derive(password, salt, iterations, wanted.length, 'sha1')
  return [timingSafeEqual(sha256, wanted), timingSafeEqual(sha1, wanted)].includes(true)
}
