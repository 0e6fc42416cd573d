import { z } from 'zod'
import { exportedAnchorSchema, positionSchema, type SignedPosition } from '../audit/anchor.ts'
import type { LogPosition } from '../record-store.ts'

/** Approximate records of a period: the index is held in memory while the period is written. */
export const PERIOD_RECORDS = 1_000_000n

const offsetSchema = z.string().regex(/^\d{1,19}$/)
const digestSchema = z.string().regex(/^[0-9a-f]{64}$/)

/** Consecutive records of one log partition: gzip of one JSON line per record. */
const segmentSchema = z.object({
  name: z.string().regex(/^[\w.-]+$/),
  partition: z.number().int().min(0),
  /** First offset, and the one after the last. */
  from: offsetSchema,
  to: offsetSchema,
  bytes: z.number().int(),
  sha256: digestSchema,
})

/** A part of the index of streams: a byte range of its file, and the first stream name in it. */
const indexBlockSchema = z.object({ first: z.string(), at: z.number().int(), bytes: z.number().int() })

const fileSchema = z.object({ name: z.string().regex(/^[\w.-]+$/), bytes: z.number().int(), sha256: digestSchema })

/** The manifest of a period: its bounds, its anchor and its files. */
export const manifestSchema = z.object({
  format: z.literal(1),
  /** 1, 2, 3 … in this log. */
  number: z.number().int().min(1),
  logId: z.string().regex(/^[\w.-]+$/),
  /** By log partition: where the period begins and ends, and the fold of all records below. */
  from: z.array(positionSchema).min(1),
  to: z.array(positionSchema).min(1),
  /** The anchor that signs the end. */
  anchor: exportedAnchorSchema,
  records: z.number().int(),
  /** Number of events that count. */
  events: z.number().int(),
  /** First and last name, by code units, of the streams that can end; absent without such a stream. */
  names: z.object({ first: z.string(), last: z.string() }).optional(),
  segments: z.array(segmentSchema),
  /** The index of streams, ordered by name: one JSON line per stream, with the offsets of its events. */
  streams: fileSchema.extend({ blocks: z.array(indexBlockSchema) }),
  /** The last events of the streams that never end, of this period and all before it. */
  heads: fileSchema,
})

export type PeriodManifest = Readonly<z.infer<typeof manifestSchema>>
export type Segment = PeriodManifest['segments'][number]

/** Converts a position of an anchor to one of the log's readers. */
export function logPositionOf({ offset, ...state }: SignedPosition): LogPosition {
  return { offset: BigInt(offset), state }
}

export function signedPositionOf({
  offset,
  state: { epoch, writer, number, count, hash },
}: LogPosition): SignedPosition {
  return { offset: String(offset), epoch, writer, number, count, hash }
}
