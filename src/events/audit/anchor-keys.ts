import { createPublicKey, sign, verify, type KeyObject } from 'node:crypto'
import { z } from 'zod'
import { exportedKey, fingerprint, type AnchorKey, type ExportedAnchor } from './anchor.ts'

/** The data of the event AnchorKeyVouched. */
export const anchorKeySchema = z.object({
  logId: z.string(),
  key: z.string().describe('Fingerprint of the introduced key, as anchors name it'),
  publicKey: z.string().describe('The introduced key: SPKI, DER, base64'),
  signedBy: z.string().describe('Fingerprint of the key that introduces it; equal to `key` if a key introduces itself'),
  signature: z.string().describe('Ed25519 signature with `signedBy`, base64, of the text that docs/audit.md names'),
})

/** A record by which a key vouches that another key belongs to a coordinator of the same log. */
export type AnchorKeyRecord = Readonly<z.infer<typeof anchorKeySchema>>

/** Vouches for the key of another coordinator of a log, or introduces the signer's own key. */
export function vouchFor(publicKey: KeyObject, logId: string, signer: AnchorKey): AnchorKeyRecord {
  const unsigned = {
    logId,
    key: fingerprint(publicKey),
    publicKey: publicKeyText(publicKey),
    signedBy: fingerprint(signer.public),
  }
  const signature = sign(null, Buffer.from(signedText(unsigned)), signer.private)
  return { ...unsigned, signature: signature.toString('base64') }
}

/** Whether a record was signed by the key that it names as its signer. */
export function isVouchedBy(record: AnchorKeyRecord, signer: KeyObject): boolean {
  const key = readPublicKey(record.publicKey)
  if (!key || fingerprint(key) !== record.key || fingerprint(signer) !== record.signedBy) return false
  return verify(null, Buffer.from(signedText(record)), signer, Buffer.from(record.signature, 'base64'))
}

/** A public key as text: SPKI, DER, base64. */
export function publicKeyText(key: KeyObject): string {
  return key.export({ type: 'spki', format: 'der' }).toString('base64')
}

/** Reads an Ed25519 key from such a text; undefined when it is none. */
export function readPublicKey(text: string): KeyObject | undefined {
  try {
    const key = createPublicKey({ key: Buffer.from(text, 'base64'), type: 'spki', format: 'der' })
    return key.asymmetricKeyType === 'ed25519' ? key : undefined
  } catch {
    return undefined
  }
}

/** The keys of a log, as its records give them. */
export interface KeyChain {
  /** By fingerprint: trusted keys, and keys that a known key vouches for. */
  readonly known: ReadonlyMap<string, KeyObject>
  /** Records that name a known key as their signer but were not signed by it. */
  readonly forged: readonly AnchorKeyRecord[]
  /** Records of keys that are not known. */
  readonly unknown: readonly AnchorKeyRecord[]
}

/**
 * Follows the chain of keys. A process that can write the log can add records, but cannot sign them with a known key.
 * @param trusted keys that need no voucher; without any, the key of the log's first record is trusted
 */
export function followKeys(trusted: readonly KeyObject[], logId: string, all: readonly AnchorKeyRecord[]): KeyChain {
  const records = all.filter((record) => record.logId === logId)
  const first = trusted.length === 0 && records[0] ? readPublicKey(records[0].publicKey) : undefined
  const known = new Map([...trusted, ...(first ? [first] : [])].map((key) => [fingerprint(key), key]))
  for (let before = -1; before < known.size;) {
    before = known.size
    for (const record of records) {
      const signer = known.get(record.signedBy)
      if (signer && !known.has(record.key) && isVouchedBy(record, signer))
        known.set(record.key, readPublicKey(record.publicKey)!)
    }
  }
  return {
    known,
    forged: records.filter((record) => {
      const signer = known.get(record.signedBy)
      return signer !== undefined && !isVouchedBy(record, signer)
    }),
    unknown: records.filter((record) => !known.has(record.key)),
  }
}

/** Keys that need no voucher: the given ones, else those of the exported anchors. */
export function trustedKeys(given: {
  readonly keys?: readonly KeyObject[]
  readonly exported?: readonly ExportedAnchor[]
}): readonly KeyObject[] {
  return given.keys ?? given.exported?.map(exportedKey) ?? []
}

function signedText({ logId, publicKey, signedBy }: Omit<AnchorKeyRecord, 'signature'>): string {
  return JSON.stringify(['quipu.anchor-key.v1', logId, publicKey, signedBy])
}
