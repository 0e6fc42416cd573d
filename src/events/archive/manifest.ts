import { z } from 'zod'
import { exportedAnchorSchema, positionSchema, type SignedPosition } from '../audit/anchor.ts'
import type { LogPosition } from '../record-store.ts'

/** Of one period, about: its index is held in memory while it is made. */
export const PERIOD_RECORDS = 1_000_000n

const offsetSchema = z.string().regex(/^\d{1,19}$/)
const digestSchema = z.string().regex(/^[0-9a-f]{64}$/)

/** Records of one log partition that lie one after another: gzip of a JSON line a record. */
const segmentSchema = z.object({
  name: z.string().regex(/^[\w.-]+$/),
  partition: z.number().int().min(0),
  /** First offset, and the one behind the last. */
  from: offsetSchema,
  to: offsetSchema,
  bytes: z.number().int(),
  sha256: digestSchema,
})

/** A part of the index of streams: some bytes of its file, and the first name in it. */
const indexBlockSchema = z.object({ first: z.string(), at: z.number().int(), bytes: z.number().int() })

const fileSchema = z.object({ name: z.string().regex(/^[\w.-]+$/), bytes: z.number().int(), sha256: digestSchema })

/** What a period of the log is, and what of it lies where. */
export const manifestSchema = z.object({
  format: z.literal(1),
  /** 1, 2, 3 … in this log. */
  number: z.number().int().min(1),
  logId: z.string().regex(/^[\w.-]+$/),
  /** By log partition: where the period begins and ends, and what all below fold to. */
  from: z.array(positionSchema).min(1),
  to: z.array(positionSchema).min(1),
  /** Signs the end. */
  anchor: exportedAnchorSchema,
  records: z.number().int(),
  /** Those that count. */
  events: z.number().int(),
  /** Names of the streams that end, the first and the last by code units; none where there is no such stream. */
  names: z.object({ first: z.string(), last: z.string() }).optional(),
  segments: z.array(segmentSchema),
  /** Where each stream has records: in order of names, a JSON line each with the numbers of segments. */
  streams: fileSchema.extend({ blocks: z.array(indexBlockSchema) }),
  /** Last events of the streams that never end, of this period and all before it. */
  heads: fileSchema,
})

export type PeriodManifest = Readonly<z.infer<typeof manifestSchema>>
export type Segment = PeriodManifest['segments'][number]

/** As an anchor has it, and as the log's readers do. */
export function placeOf({ offset, ...state }: SignedPosition): LogPosition {
  return { offset: BigInt(offset), state }
}

export function signedPlaceOf({ offset, state: { epoch, writer, number, count, hash } }: LogPosition): SignedPosition {
  return { offset: String(offset), epoch, writer, number, count, hash }
}
