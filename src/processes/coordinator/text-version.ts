import { createHash, createHmac } from 'node:crypto'
import type { FileVersion } from '../../coordinator/system/file-record.ts'
import { redactSecrets } from '../../sql/syntax/redact-secrets.ts'
import { isSecretName } from '../../sql/syntax/secret-names.ts'
import { REDACTED } from '../../sql/syntax/secret-values.ts'

/** Longer texts are told of by their digest alone. */
const MOST_CHARACTERS = 8 << 20

export type TextVersion = Pick<FileVersion, 'digest' | 'bytes' | 'kept'>

/**
 * What is told of the text of a file.
 * @param secret none of it is told
 * @param key of the cluster: what is kept otherwise than as it is has a digest that nobody can try secrets against
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

/** SQL of rules without literals that are secrets; what has the name of one, without its value. */
function shownValue(key: string, value: unknown): unknown {
  if (typeof value !== 'string') return value
  if (key === 'filter' || key === 'mask') return redactSecrets(value).sql
  return isSecretName(key) ? REDACTED : value
}

/** Of a file in another form: that of groups has no secrets. */
function jsonOf(text: string, reviver: (key: string, value: unknown) => unknown): unknown {
  try {
    return JSON.parse(text, reviver) as unknown
  } catch {
    return undefined
  }
}
