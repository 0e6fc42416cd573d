import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/*
 * Encrypted data of an event, in a log whose records cannot be rewritten: nonce (12 bytes), tag (16), then the data
 * encrypted with AES-256-GCM, in base64. The event's header is authenticated, so the data cannot be moved to another
 * event, and without the key nobody can forge an event whose hashes are right.
 */

const NONCE_BYTES = 12
const TAG_BYTES = 16
const HEAD_BYTES = NONCE_BYTES + TAG_BYTES

/** Encrypts data. @param key 32 bytes */
export function encryptData(key: Buffer, header: string, data: string | Buffer): string {
  const nonce = nextNonce()
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(Buffer.from(header))
  const encrypted = typeof data === 'string' ? cipher.update(data, 'utf8') : cipher.update(data)
  cipher.final()
  return Buffer.concat([nonce, cipher.getAuthTag(), encrypted]).toString('base64')
}

let nonces = Buffer.alloc(0)

/** A random nonce. Random bytes are drawn for 256 nonces at once: one by one they cost as much as the cipher. */
function nextNonce(): Buffer {
  if (nonces.length < NONCE_BYTES) nonces = randomBytes(NONCE_BYTES * 256)
  const nonce = nonces.subarray(0, NONCE_BYTES)
  nonces = nonces.subarray(NONCE_BYTES)
  return nonce
}

/** Decrypts data. @returns undefined when this key did not encrypt the text for this event */
export function decryptData(key: Buffer, header: string, text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  if (bytes.length < HEAD_BYTES) return undefined
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES))
  decipher.setAAD(Buffer.from(header))
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, HEAD_BYTES))
  try {
    const data = decipher.update(bytes.subarray(HEAD_BYTES))
    decipher.final()
    return data
  } catch {
    return undefined
  }
}
