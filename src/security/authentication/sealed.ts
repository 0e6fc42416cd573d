import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * Encrypts a text by AES-256-GCM, with a new nonce.
 * @param purpose a text that is sealed for one purpose cannot be opened for another
 */
export function seal(key: Buffer, purpose: string, plain: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(purpose))
  return Buffer.concat([nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()])
}

/** Decrypts. Undefined for bytes that were not sealed by this key for this purpose. */
export function unseal(key: Buffer, purpose: string, bytes: Uint8Array): string | undefined {
  if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined
  const end = bytes.length - TAG_BYTES
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES))
    .setAAD(Buffer.from(purpose))
    .setAuthTag(bytes.subarray(end))
  try {
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, end)), decipher.final()]).toString('utf8')
  } catch {
    return undefined
  }
}
