import { z } from 'zod'
import { parseJson } from '../../shared/parse-json.ts'
import type { ArchivedRecords } from '../archive/archived-records.ts'
import { readEnvelope } from '../envelope.ts'
import { SYSTEM_STREAM } from '../folded-event-log.ts'
import type { StoredRecord } from '../record-store.ts'

/** The log that this one continues, and its newest epoch. */
export interface LogBefore {
  readonly logId: string
  readonly epoch: number
  readonly archive: ArchivedRecords
}

/** The fields of LogContinued that a store needs. */
const continuedSchema = z.object({ logId: z.string(), epoch: z.number().int() })

/** The earlier log that the event LogContinued names; undefined if these records do not have this event. */
export function logNamedIn(records: readonly StoredRecord[]): z.infer<typeof continuedSchema> | undefined {
  for (const { header, stream, text } of records) {
    const envelope = header?.kind === 'event' && stream === SYSTEM_STREAM ? readEnvelope(text) : undefined
    if (envelope?.type === 'LogContinued' && envelope.enc === 'none')
      return continuedSchema.safeParse(parseJson(envelope.data)).data
  }
  return undefined
}
