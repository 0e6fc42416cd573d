import { hkdfSync, randomBytes } from 'node:crypto'
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { hasCode } from '../shared/node-error.ts'

/** What a key is for; a key of one purpose says nothing about those of the others. */
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

const SHORTEST_SECRET = 16

/**
 * The secret of the cluster: the one configured, else that of `<data>/secret`, which is made at the first start and
 * readable by its owner only.
 * @throws ExitError 64 when it is too short to keep anything
 */
export function loadClusterSecret(dataDir: string, configured: string | undefined): string {
  const path = join(dataDir, 'secret')
  const secret = configured ?? readSecret(path) ?? makeSecret(dataDir, path)
  if (secret.length < SHORTEST_SECRET) {
    const where = configured === undefined ? path : 'QUIPU_SHARED_SECRET'
    throw new ExitError(exitCodes.configuration, `${where}: a secret has at least ${SHORTEST_SECRET} characters`)
  }
  return secret
}

/** 32 bytes for one purpose, by HKDF over SHA-256. */
export function deriveKey(secret: string, purpose: KeyPurpose): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, 'quipu', purpose, 32))
}

/** What goes after `Authorization: Bearer ` on requests between processes of the cluster. */
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

/** Coordinator and worker may both come here at the first start: a link made whole, and only one of them makes it. */
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
