import { createHash, createHmac } from 'node:crypto'
import type { FileVersion } from '../../coordinator/system/file-record.ts'
import { redactSecrets } from '../../sql/syntax/redact-secrets.ts'
import { isSecretName } from '../../sql/syntax/secret-names.ts'
import { REDACTED } from '../../sql/syntax/secret-values.ts'

/** For a longer text, only the digest is recorded. */
const MOST_CHARACTERS = 8 << 20

export type TextVersion = Pick<FileVersion, 'digest' | 'bytes' | 'kept'>

/**
 * The version of a file's text as it is recorded.
 * @param secret whether nothing of the text is recorded
 * @param key of the cluster: texts that are not recorded unchanged get a keyed digest, so it cannot be used to test
 * guesses of secrets
 */
export function textVersion(
  text: string,
  { key, secret }: { readonly key: Uint8Array; readonly secret: boolean },
): TextVersion {
  const kept = secret ? ({ as: 'secret' } as const) : keptOf(text)
  const digest = kept.as === 'recorded' ? createHash('sha256') : createHmac('sha256', key)
  return { bytes: Buffer.byteLength(text), kept, digest: digest.update(text).digest('hex') }
}

function keptOf(text: string): FileVersion['kept'] {
  if (text.length > MOST_CHARACTERS) return { as: 'too_long' }
  let redacted = false
  const value = jsonOf(text, (key, one) => {
    const shown = shownValue(key, one)
    redacted ||= shown !== one
    return shown
  })
  return redacted ? { as: 'redacted', text: JSON.stringify(value, undefined, 2) } : { as: 'recorded', text }
}

/** SQL of rules without secret literals; values whose names say that they are secret are replaced. */
function shownValue(key: string, value: unknown): unknown {
  if (typeof value !== 'string') return value
  if (key === 'filter' || key === 'mask') return redactSecrets(value).sql
  return isSecretName(key) ? REDACTED : value
}

/** Parses JSON; undefined for a file in another form. A file of groups has no secrets. */
function jsonOf(text: string, reviver: (key: string, value: unknown) => unknown): unknown {
  try {
    return JSON.parse(text, reviver) as unknown
  } catch {
    return undefined
  }
}
