import { systemEventData } from '../../coordinator/system/decode-event.ts'
import { systemStream } from '../../coordinator/system/events.ts'
import { tombstoneOf, type Recorded } from '../../events/event-log.ts'
import type { DeadLetter, TableWrite } from '../../events/projection.ts'
import { tablesOfQueries } from './tables.ts'

/**
 * Collects the data to forget from a batch. An event that does not fit its type is a dead letter and is ignored here.
 */
export class ForgetBatch {
  readonly #forgotten: { readonly stream: string; readonly sequence: number }[] = []
  readonly #streams = new Set<string>()

  apply({ type, v, data, forgotten }: Recorded): void {
    if (type !== 'DataForgotten' || forgotten) return
    const { stream, sequences } = systemEventData('DataForgotten', v, data)
    this.#streams.add(stream)
    for (const sequence of sequences) this.#forgotten.push({ stream, sequence })
  }

  get streams(): ReadonlySet<string> {
    return this.#streams
  }

  /**
   * Removes the data of a dead letter of the same batch, which is written after the batch's rows. Also removes the
   * database's error, which quotes the data.
   */
  withoutData(letter: DeadLetter): DeadLetter {
    const { stream, sequence } = letter.event
    const isForgotten =
      stream === systemStream
        ? this.#forgotten.some((one) => one.stream === stream && one.sequence === sequence)
        : this.#streams.has(stream)
    if (!isForgotten) return letter
    const event = tombstoneOf(letter.event)
    return letter.kind === 'failed' ? { kind: 'failed', event, error: undefined } : { kind: 'parked', event }
  }

  /**
   * The writes that forget data. They must come after all others of the batch, so that they also delete rows of its
   * earlier events. A log that is folded anew has only tombstones, and so no rows to begin with.
   */
  writes(): readonly TableWrite[] {
    if (this.#streams.size === 0) return []
    const streams = [...this.#streams]
    const forgotten = [this.#forgotten.map((one) => one.stream), this.#forgotten.map((one) => one.sequence)]
    return [
      ...tablesOfQueries.map(({ name }) => ({
        text: `delete from ${name} where query_id = any($1)`,
        values: [streams],
      })),
      {
        text: `update query_events e set data = '', forgotten = true
               from rows from (unnest($1::text[]), unnest($2::bigint[])) as f (stream, sequence)
               where e.stream = f.stream and e.sequence = f.sequence`,
        values: forgotten,
      },
      {
        text: `update dead_letters set data = '', error_message = null
               where stream = any($1) or (stream, sequence) in (select * from unnest($2::text[], $3::bigint[]))`,
        values: [streams.filter((stream) => stream !== systemStream), ...forgotten],
      },
      // A log that is folded anew has no rows of forgotten events of the system.
      {
        text: `delete from audit_log where (stream, sequence) in (select * from unnest($1::text[], $2::bigint[]))`,
        values: forgotten,
      },
      // The row still names the user who ended the query; only the message goes.
      { text: `update audit_log set details = details - 'message' where query_id = any($1)`, values: [streams] },
    ]
  }
}
