import { isSystemEventType, systemEventData } from '../../coordinator/system/decode-event.ts'
import type { Recorded } from '../../events/event-log.ts'
import type { TableWrite } from '../../events/projection.ts'
import { storableJson, storableText } from '../../events/storable-text.ts'
import { defineTable } from '../table.ts'
import { queryOfStream } from '../../shared/ids.ts'

export const auditTable = defineTable('audit_log', ['stream', 'sequence'], {
  stream: 'text',
  sequence: 'bigint',
  at: 'timestamptz',
  kind: 'text',
  user_name: 'text null',
  count: 'bigint',
  action: 'text null',
  object: 'text null',
  remote_address: 'text null',
  query_id: 'text null',
  details: 'jsonb',
})

type AuditRow = Parameters<typeof auditTable.insert>[0][number]

/** Collects events of the stream `system`, one row each. */
export class AuditBatch {
  readonly #rows: AuditRow[] = []

  /** Applies an event. @throws ZodError when the data does not fit the type */
  apply({ stream, sequence, type, v, time, data, forgotten }: Recorded): void {
    if (forgotten || !isSystemEventType(type)) return
    // Texts of files stay in the log only: they show what is hidden from which users.
    const { text: _, ...details }: Readonly<Record<string, unknown>> = systemEventData(type, v, data)
    const { queryId } = details
    this.#rows.push({
      stream: storableText(stream),
      sequence,
      at: time,
      kind: type,
      // The user who really acted, even when acting as another user.
      user_name: text(details['originalUser'] ?? details['user'] ?? details['by']),
      count: typeof details['count'] === 'number' ? details['count'] : 1,
      action: text(details['action'] ?? details['method'] ?? details['file']),
      object: text(details['object'] ?? details['address'] ?? details['path'] ?? details['nodeId']),
      remote_address: text(details['remoteAddress']),
      query_id: typeof queryId === 'string' ? queryOfStream(storableText(queryId)) : null,
      details: storableJson(details),
    })
  }

  writes(): readonly TableWrite[] {
    const write = auditTable.insert(this.#rows)
    return write ? [write] : []
  }
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? storableText(value) : null
}
