import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/*
 * A page at rest: form (1 byte), nonce (12), tag (16), then the page encrypted with AES-256-GCM. A topic has no rights
 * by query, and results are what people may least see of each other; so whoever reads the topic reads noise. Stream and
 * token are authenticated with it: a page moved to another place of another result does not open.
 */

const FORM = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16
const HEAD_BYTES = 1 + NONCE_BYTES + TAG_BYTES

/** @param key 32 bytes */
export function sealPage(key: Buffer, stream: string, token: number, bytes: Uint8Array): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(belongsTo(stream, token))
  const sealed = [cipher.update(bytes), cipher.final()]
  return Buffer.concat([Buffer.of(FORM), nonce, cipher.getAuthTag(), ...sealed])
}

/** @returns undefined for what this key did not seal for this stream and token */
export function openPage(key: Buffer, stream: string, token: number, sealed: Buffer): Buffer | undefined {
  if (sealed.length < HEAD_BYTES || sealed[0] !== FORM) return undefined
  const nonce = sealed.subarray(1, 1 + NONCE_BYTES)
  const decipher = createDecipheriv('aes-256-gcm', key, nonce)
  decipher.setAAD(belongsTo(stream, token))
  decipher.setAuthTag(sealed.subarray(1 + NONCE_BYTES, HEAD_BYTES))
  try {
    return Buffer.concat([decipher.update(sealed.subarray(HEAD_BYTES)), decipher.final()])
  } catch {
    return undefined
  }
}

function belongsTo(stream: string, token: number): Buffer {
  return Buffer.from(`${stream}/${token}`)
}
