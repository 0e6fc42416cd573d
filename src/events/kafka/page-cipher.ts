import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

/*
 * A stored page: form (1 byte), nonce (12), tag (16), then the page encrypted with AES-256-GCM. A topic has no access
 * rights per query, and users must not see each other's results; so a reader of the topic sees only encrypted bytes.
 * Stream and token are authenticated: a page that was moved to another token or result cannot be opened.
 *
 * Random nonces are safe for some 2^32 pages per key, so each query has a key of its own, derived from the cluster's
 * key (form 2). Pages of form 1, which were sealed with the cluster's key itself, can still be read.
 */

const FORM = 2
const FORM_OF_ONE_KEY = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16
const HEAD_BYTES = 1 + NONCE_BYTES + TAG_BYTES

/** Encrypts a page. @param key of the cluster, 32 bytes */
export function sealPage(key: Buffer, stream: string, token: number, bytes: Uint8Array): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', keyOf(key, stream), nonce)
  cipher.setAAD(belongsTo(stream, token))
  const sealed = [cipher.update(bytes), cipher.final()]
  return Buffer.concat([Buffer.of(FORM), nonce, cipher.getAuthTag(), ...sealed])
}

/** Decrypts a page. @returns undefined when this key did not seal these bytes for this stream and token */
export function openPage(key: Buffer, stream: string, token: number, sealed: Buffer): Buffer | undefined {
  const form = sealed[0]
  if (sealed.length < HEAD_BYTES || (form !== FORM && form !== FORM_OF_ONE_KEY)) return undefined
  const nonce = sealed.subarray(1, 1 + NONCE_BYTES)
  const decipher = createDecipheriv('aes-256-gcm', form === FORM ? keyOf(key, stream) : key, nonce)
  decipher.setAAD(belongsTo(stream, token))
  decipher.setAuthTag(sealed.subarray(1 + NONCE_BYTES, HEAD_BYTES))
  try {
    return Buffer.concat([decipher.update(sealed.subarray(HEAD_BYTES)), decipher.final()])
  } catch {
    return undefined
  }
}

/** The key for the pages of one query. */
function keyOf(key: Buffer, stream: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', `quipu result pages of ${stream}`, 32))
}

function belongsTo(stream: string, token: number): Buffer {
  return Buffer.from(`${stream}/${token}`)
}
