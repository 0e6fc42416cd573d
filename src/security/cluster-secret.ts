import { hkdfSync, randomBytes } from 'node:crypto'
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { hasCode } from '../shared/node-error.ts'

/** The purpose of a key. The key of one purpose reveals nothing about the others. */
export type KeyPurpose =
  | 'statement-token'
  | 'stage-cancel'
  | 'internal-bearer'
  | 'catalog-digest'
  | 'result-pages'
  | 'relay'
  | 'session-token'
  | 'password-file'
  | 'log-ins'
  | 'tls-tickets'
  | 'failed-log-ins'
  | 'file-digest'
  | 'replays'
  | 'lineage-jobs'
  | 'result-digests'
  | 'anchor-keys'
  | 'remote-addresses'
  | 'erasures'
  | 'erasure-subjects'
  | 'act-previews'

const SHORTEST_SECRET = 16

/**
 * Loads the secret of the cluster: the configured one, else that of `<data>/secret`. The first start makes that file,
 * readable by its owner only.
 * @throws ExitError 64 when the secret is too short to be safe
 */
export function loadClusterSecret(dataDir: string, configured: string | undefined): string {
  const path = join(dataDir, 'secret')
  const secret = configured ?? readSecret(path) ?? makeSecret(dataDir, path)
  if (secret.length < SHORTEST_SECRET) {
    const where = configured === undefined ? path : 'QUIPU_SHARED_SECRET'
    throw new ExitError(
      exitCodes.configuration,
      `${where}: the secret must have at least ${SHORTEST_SECRET} characters`,
    )
  }
  return secret
}

/** Derives the key of one purpose: 32 bytes, by HKDF over SHA-256. */
export function deriveKey(secret: string, purpose: KeyPurpose): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, 'quipu', purpose, 32))
}

/** The token after `Authorization: Bearer ` in requests between processes of the cluster. */
export function internalBearer(secret: string): string {
  return deriveKey(secret, 'internal-bearer').toString('hex')
}

function readSecret(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw new ExitError(exitCodes.configuration, `Cannot read ${path}: ${(error as Error).message}`)
  }
}

/**
 * Makes the secret. Coordinator and worker may both run this at the first start: a link appears with its whole content,
 * and only one of them creates it.
 */
function makeSecret(dataDir: string, path: string): string {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const own = `${path}.${process.pid}`
  writeFileSync(own, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600 })
  try {
    linkSync(own, path)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  } finally {
    rmSync(own, { force: true })
  }
  return readFileSync(path, 'utf8').trim()
}
