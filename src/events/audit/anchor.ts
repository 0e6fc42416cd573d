import { createPublicKey, hash, sign, verify, type KeyObject } from 'node:crypto'
import { z } from 'zod'
import type { Checkpoint } from '../event-log.ts'
import { merkleRoot } from './merkle.ts'

/** A position in a log partition: an offset, and the fold of all records below it. */
export const positionSchema = z.object({
  offset: z.string().regex(/^\d{1,19}$/),
  epoch: z.number().int(),
  writer: z.string(),
  number: z.number().int(),
  count: z.number().int(),
  hash: z.string(),
})

export type SignedPosition = Readonly<z.infer<typeof positionSchema>>

/** The data of the event LogAnchored. */
export const anchorSchema = z.object({
  number: z.number().int().min(1).describe('Number of the anchor in this log: 1, 2, 3 …'),
  logId: z.string(),
  at: z
    .array(positionSchema)
    .describe(
      'First offset that is not anchored, and the fold of all records below it (count and hash), by log partition',
    ),
  heads: z.number().int().min(0).describe('Number of streams that changed since the previous anchor'),
  root: z
    .string()
    .describe('Merkle root of the last events of these streams: stream, sequence, hash; sorted by stream'),
  previous: z
    .string()
    .describe('SHA-256 of the signed text and the signature of the previous anchor; empty for the first'),
  key: z.string().describe('Fingerprint of the key: SHA-256 of its SPKI form, the first 32 hex digits'),
  signature: z.string().describe('Ed25519 signature, base64, of the text that docs/audit.md names'),
})

export type Anchor = Readonly<z.infer<typeof anchorSchema>>

/** An anchor as it leaves the system: a line of the anchor file, or the body sent to the webhook. */
export const exportedAnchorSchema = anchorSchema.extend({
  /** Time of the event. */
  time: z.string(),
  /** SPKI, DER, base64. */
  publicKey: z.string(),
})

export type ExportedAnchor = Readonly<z.infer<typeof exportedAnchorSchema>>

/** The last event of a stream. */
export interface Head {
  readonly sequence: number
  readonly hash: string
}

export interface AnchorKey {
  readonly private: KeyObject
  readonly public: KeyObject
}

/** Signs the log up to a checkpoint. */
export function makeAnchor(
  checkpoint: Checkpoint,
  heads: ReadonlyMap<string, Head>,
  previous: Anchor | undefined,
  key: AnchorKey,
): Anchor {
  const unsigned = {
    number: (previous?.number ?? 0) + 1,
    logId: checkpoint.logId,
    at: checkpoint.at.map(({ offset, state: { epoch, writer, number, count, hash: folded } }) => ({
      offset: String(offset),
      epoch,
      writer,
      number,
      count,
      hash: folded,
    })),
    heads: heads.size,
    root: headsRoot(heads),
    previous: previous ? anchorHash(previous) : '',
    key: fingerprint(key.public),
  }
  return { ...unsigned, signature: sign(null, Buffer.from(signedText(unsigned)), key.private).toString('base64') }
}

/** The end of an anchor as a checkpoint to read on from. Its first use proves it against the log. */
export function anchorCheckpoint(anchor: Anchor): Checkpoint {
  return {
    logId: anchor.logId,
    at: anchor.at.map(({ offset, ...state }) => ({ offset: BigInt(offset), state })),
  }
}

export function headsRoot(heads: ReadonlyMap<string, Head>): string {
  // Sorted by code units, so the order is the same everywhere.
  const streams = [...heads.keys()].sort()
  return merkleRoot(
    streams.map((stream) => {
      const { sequence, hash: last } = heads.get(stream)!
      return JSON.stringify([stream, sequence, last])
    }),
  )
}

/** The hash that the next anchor names as `previous`. */
export function anchorHash(anchor: Anchor): string {
  return hash('sha256', signedText(anchor) + anchor.signature)
}

export function isSignedBy(anchor: Anchor, key: KeyObject): boolean {
  return verify(null, Buffer.from(signedText(anchor)), key, Buffer.from(anchor.signature, 'base64'))
}

/** Makes a check whether an anchor is signed by one of some keys; without keys, by the key that it names. */
export function believes(keys: readonly KeyObject[] | undefined): (anchor: ExportedAnchor) => boolean {
  const known = keys && new Map(keys.map((key) => [fingerprint(key), key]))
  return (anchor) => {
    const key = known ? known.get(anchor.key) : exportedKey(anchor)
    return key !== undefined && fingerprint(key) === anchor.key && isSignedBy(anchor, key)
  }
}

export function exportAnchor(anchor: Anchor, time: string, publicKey: KeyObject): ExportedAnchor {
  return { ...anchor, time, publicKey: publicKey.export({ type: 'spki', format: 'der' }).toString('base64') }
}

export function exportedKey(exported: ExportedAnchor): KeyObject {
  return createPublicKey({ key: Buffer.from(exported.publicKey, 'base64'), type: 'spki', format: 'der' })
}

export function fingerprint(publicKey: KeyObject): string {
  return hash('sha256', publicKey.export({ type: 'spki', format: 'der' })).slice(0, 32)
}

function signedText(anchor: Omit<Anchor, 'signature'>): string {
  const { number, logId, at, heads, root, previous, key } = anchor
  const positions = at.map((position) => [
    position.offset,
    position.epoch,
    position.writer,
    position.number,
    position.count,
    position.hash,
  ])
  return JSON.stringify(['quipu.anchor.v1', logId, number, positions, heads, root, previous, key])
}
