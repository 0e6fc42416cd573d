import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { hasCode } from '../shared/node-error.ts'

/**
 * Loads the Ed25519 key that signs anchors. The key lies outside log and database: a process that can write those must
 * not be able to sign.
 * The first start makes the key, readable by its owner only, and puts the public half beside it as `<path>.pub`.
 * @throws ExitError 64 when the file cannot be read or holds another kind of key
 */
export function loadAnchorKey(path: string): { readonly private: KeyObject; readonly public: KeyObject } {
  const text = readOrMake(path)
  try {
    const key = createPrivateKey(text)
    if (key.asymmetricKeyType !== 'ed25519') throw new Error(`it is a key of type ${key.asymmetricKeyType}`)
    return { private: key, public: createPublicKey(key) }
  } catch (error) {
    throw new ExitError(exitCodes.configuration, `${path} is not an Ed25519 key: ${(error as Error).message}`)
  }
}

/**
 * Reads the public keys of a PEM file.
 * @throws ExitError 64
 */
export function readPublicKeys(path: string): readonly KeyObject[] {
  const text = read(path)
  if (text === undefined) throw new ExitError(exitCodes.configuration, `The file ${path} does not exist`)
  try {
    const blocks = text.match(/-----BEGIN PUBLIC KEY-----[^-]+-----END PUBLIC KEY-----/g) ?? []
    if (blocks.length === 0) throw new Error('it holds no public key')
    return blocks.map((block) => createPublicKey(block))
  } catch (error) {
    throw new ExitError(exitCodes.configuration, `${path}: ${(error as Error).message}`)
  }
}

export function publicKeyPath(path: string): string {
  return `${path}.pub`
}

function readOrMake(path: string): string {
  const there = read(path)
  if (there !== undefined) return there
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const own = `${path}.${process.pid}`
  writeFileSync(own, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  try {
    // Two coordinators may run this at the same time. A link appears with its whole content, and only one of them
    // creates it.
    linkSync(own, path)
    writeFileSync(publicKeyPath(path), publicKey.export({ type: 'spki', format: 'pem' }), { mode: 0o600 })
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  } finally {
    rmSync(own, { force: true })
  }
  return read(path)!
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw new ExitError(exitCodes.configuration, `Cannot read ${path}: ${(error as Error).message}`)
  }
}
