import { createPublicKey, createSecretKey, type KeyObject } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { WatchedFiles } from '../watched-files.ts'
import type { TokenKey, TokenKeys } from './token-keys.ts'

const LEAST_HMAC_BYTES = 32
const LEAST_RSA_BITS = 2048

/**
 * Parses a key that verifies tokens: a public key or certificate (PEM), or a secret in Base64, as Trino reads them.
 * @throws Error when the text is no key, or the key is too weak
 */
export function parseTokenKey(text: string): TokenKey {
  if (text.includes('-----BEGIN')) {
    if (text.includes('PRIVATE KEY'))
      throw new Error('The file holds a private key: only the public key is needed to verify tokens')
    return tokenPublicKey(createPublicKey(text))
  }
  const compact = text.replace(/\s+/g, '')
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(compact)) throw new Error('Neither a public key (PEM) nor a secret in Base64')
  const secret = Buffer.from(compact, 'base64')
  if (secret.length < LEAST_HMAC_BYTES)
    throw new Error(`A secret for tokens must have at least ${LEAST_HMAC_BYTES} bytes`)
  return { key: createSecretKey(secret), algorithms: ['HS256', 'HS384', 'HS512'] }
}

/** A public key with its algorithms. The key decides the algorithms: a token that asks for another one is refused. */
export function tokenPublicKey(key: KeyObject): TokenKey {
  return { key, algorithms: algorithmsOf(key) }
}

function algorithmsOf({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): readonly string[] {
  if (type === 'rsa' && (details?.modulusLength ?? 0) < LEAST_RSA_BITS)
    throw new Error(`An RSA key for tokens must have at least ${LEAST_RSA_BITS} bits`)
  switch (type) {
    case 'rsa':
      return ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']
    case 'ed25519':
      return ['EdDSA', 'Ed25519']
    case 'ec': {
      const of = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' }[details?.namedCurve ?? '']
      if (of !== undefined) return [of]
      throw new Error(`Tokens with the curve ${details?.namedCurve} are not supported`)
    }
    default:
      throw new Error(`Tokens with a key of type ${type} are not supported`)
  }
}

/** One key for all tokens. */
export function keyOfFile(file: WatchedFiles<TokenKey>): TokenKeys {
  return { keysFor: () => [file.value], version: () => file.value }
}

const KID = '${KID}'

export function namesKeyId(path: string): boolean {
  return path.includes(KID)
}

/**
 * One file for each key id, read for each token that was not seen lately. In the file name `_` replaces every character
 * of the id that is no letter, digit, `_` or `-`.
 */
export function keysOfFiles(path: string): TokenKeys {
  const version = {}
  return {
    version: () => version,
    async *keysFor({ kid }) {
      const id = (kid ?? 'default-key').slice(0, 100).replace(/[^A-Za-z0-9_-]/g, '_')
      yield parseTokenKey(await readFile(path.split(KID).join(id), 'utf8'))
    },
  }
}
