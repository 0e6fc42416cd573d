import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { deriveKey, internalBearer, loadClusterSecret } from '../../src/security/cluster-secret.ts'

let folder: string
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'quipu-secret-'))))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('The cluster secret', () => {
  it('is generated once, in a file that only its owner can read', () => {
    const data = join(folder, 'data')
    const first = loadClusterSecret(data, undefined)
    expect(first).toMatch(/^[0-9a-f]{64}$/)
    expect(loadClusterSecret(data, undefined)).toBe(first)
    expect(statSync(join(data, 'secret')).mode & 0o777).toBe(0o600)
  })

  it('is the configured secret if one is configured, with at least 16 characters', () => {
    expect(loadClusterSecret(join(folder, 'unused'), 'a secret of some length')).toBe('a secret of some length')
    expect(() => loadClusterSecret(folder, 'short')).toThrow(
      'QUIPU_SHARED_SECRET: the secret must have at least 16 characters',
    )
  })

  it('derives a different key for each purpose and each secret', () => {
    const keys = [
      deriveKey('one secret of some length', 'statement-token'),
      deriveKey('one secret of some length', 'stage-cancel'),
      deriveKey('two secret of some length', 'statement-token'),
    ].map((key) => key.toString('hex'))
    expect(new Set(keys).size).toBe(3)
    expect(keys.every((key) => key.length === 64)).toBe(true)
    expect(internalBearer('one secret of some length')).not.toContain('one secret')
  })
})
