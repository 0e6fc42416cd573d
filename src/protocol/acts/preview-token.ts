import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import type { ActKind } from '../../coordinator/system/events.ts'
import { listingBounds, type ListingBounds } from '../query/listing-bounds.ts'

/** The result of a preview, as its user saw it. */
export interface Previewed {
  /** Only queries from before this time are in the preview, ISO UTC. */
  readonly before: string
  readonly matched: number
  readonly bounds: ListingBounds
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

/** The preview that a token belongs to. */
interface PreviewOf {
  readonly act: ActKind
  /** As posted. */
  readonly filter: unknown
  readonly user: string
}

const content = z.tuple([z.iso.datetime(), z.int().min(0), z.int().min(0), listingBounds])

/** Seals the result of a preview: no coordinator has to remember it. */
export function sealPreview(key: Buffer, of: PreviewOf, { before, matched, expiresAt, bounds }: Previewed): string {
  const text = Buffer.from(JSON.stringify([before, matched, expiresAt, bounds])).toString('base64url')
  return `${text}.${macOf(key, of, text).toString('base64url')}`
}

/** Opens a token. @returns undefined when it is not the token of a preview of this act, filter and user */
export function openPreview(key: Buffer, of: PreviewOf, token: string): Previewed | undefined {
  const [text = '', mac = ''] = token.split('.')
  const given = Buffer.from(mac, 'base64url')
  const made = macOf(key, of, text)
  if (given.length !== made.length || !timingSafeEqual(given, made)) return undefined
  // A coordinator of an earlier version may have sealed it.
  const parsed = content.safeParse(JSON.parse(Buffer.from(text, 'base64url').toString()))
  if (!parsed.success) return undefined
  const [before, matched, expiresAt, bounds] = parsed.data
  return { before, matched, expiresAt, bounds }
}

function macOf(key: Buffer, { act, filter, user }: PreviewOf, text: string): Buffer {
  const digest = createHash('sha256').update(canonical(filter)).digest('hex')
  return createHmac('sha256', key)
    .update(JSON.stringify([act, digest, user, text]))
    .digest()
}

/** JSON with sorted keys: a client may send the fields of its filter in another order. */
function canonical(filter: unknown): string {
  const entries = Object.entries(filter as Readonly<Record<string, unknown>>)
  return JSON.stringify(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}
