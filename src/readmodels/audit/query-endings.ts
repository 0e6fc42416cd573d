import { systemDataStored } from '../../coordinator/system/decode-event.ts'
import { systemStream, VISITOR_ADDRESS } from '../../coordinator/system/events.ts'
import { clusterStreamPrefix } from '../../coordinator/clusters/events.ts'
import { nodeStreamPrefix } from '../../coordinator/nodes/events.ts'
import type { AuditedEvent } from '../../events/audit/audit-log.ts'
import type { DataLeft } from '../../events/audit/encrypted-data.ts'
import type { Finding } from '../../events/audit/finding.ts'
import type { StoredEnvelope } from '../../events/envelope.ts'

/** Facts about a query without an end so far. */
interface OpenQuery {
  sequence: number
  /** The newest epoch that wrote an event of it. */
  epoch: number
  position: string
}

const END_EVENTS: ReadonlySet<string> = new Set(['QueryFinished', 'QueryFailed'])

const UNTOLD = {
  forgotten: { kind: 'forgotten', what: 'Its data is missing, but no event DataForgotten explains it' },
  'key missing': {
    kind: 'key',
    what: 'Its data cannot be read: its key is missing, but no event DataForgotten explains it',
  },
} as const

/** Checks over all events of a log that hashes cannot make: each query has one end, each tombstone its reason. */
export class QueryEndings {
  readonly #onFinding: (finding: Finding) => void
  readonly #open = new Map<string, OpenQuery>()
  readonly #ended = new Set<string>()
  /** Findings for missing data, reported unless an event explains them. */
  readonly #tombstones = new Map<string, Finding>()
  readonly #reported = new Map<string, Omit<Finding, 'kind' | 'what'>>()
  /** Epochs of processes that wrote only an event or two, and took over no query. */
  readonly #visits = new Set<number>()

  constructor(onFinding: (finding: Finding) => void) {
    this.#onFinding = onFinding
  }

  take({ stream, envelope, position }: AuditedEvent, data: DataLeft): void {
    const { sequence, epoch, type } = envelope
    if (data !== 'there') this.#tombstones.set(keyOf(stream, sequence), { ...UNTOLD[data], stream, sequence, position })
    if (stream === systemStream) {
      if (type === 'EpochStarted' && !envelope.forgotten) this.#claimed(envelope)
      if (type === 'DataForgotten' && !envelope.forgotten) this.#forgotten(envelope)
      if (type === 'QueriesTakenOver' && !envelope.forgotten) this.#takenOver(envelope)
      return
    }
    if (stream.startsWith(nodeStreamPrefix) || stream.startsWith(clusterStreamPrefix)) return
    if (END_EVENTS.has(type)) {
      if (this.#ended.has(stream))
        this.#onFinding({
          kind: 'query-with-two-ends',
          stream,
          sequence,
          position,
          what: `The query has ended, but ${type} follows`,
        })
      this.#ended.add(stream)
      this.#open.delete(stream)
    } else if (!this.#ended.has(stream)) this.#open.set(stream, { sequence, epoch, position })
  }

  /**
   * Reports what is missing at the end of the log.
   * @param epoch the newest: its writer may yet end the queries that it wrote about
   * @returns the number of queries, and how many of them are open
   */
  finish(epoch: number): { readonly queries: number; readonly open: number } {
    let open = 0
    let newest = epoch
    while (this.#visits.has(newest)) newest--
    for (const [stream, last] of this.#open) {
      if (last.epoch >= newest) {
        open++
        continue
      }
      const { sequence, position } = last
      const what = `Its last event is of epoch ${last.epoch}; the coordinator of epoch ${newest} neither continued nor ended the query`
      this.#onFinding({ kind: 'query-without-end', stream, sequence, position, what })
    }
    for (const [key, unreported] of this.#tombstones) if (!this.#reported.has(key)) this.#onFinding(unreported)
    for (const [key, at] of this.#reported)
      if (!this.#tombstones.has(key)) {
        const what =
          'The event DataForgotten says that its data was removed, but the data is there: forget the query again'
        this.#onFinding({ kind: 'forgotten', ...at, what })
      }
    return { queries: this.#ended.size + this.#open.size, open }
  }

  #claimed(envelope: StoredEnvelope): void {
    if (systemDataStored('EpochStarted', envelope)?.address === VISITOR_ADDRESS) this.#visits.add(envelope.epoch)
  }

  /** An idle query has no event from the coordinator that took it over. */
  #takenOver(envelope: StoredEnvelope): void {
    for (const queryId of systemDataStored('QueriesTakenOver', envelope)?.queries ?? []) {
      const open = this.#open.get(queryId)
      if (open) open.epoch = Math.max(open.epoch, envelope.epoch)
    }
  }

  #forgotten(envelope: StoredEnvelope): void {
    const forgotten = systemDataStored('DataForgotten', envelope)
    if (!forgotten) return
    const { stream, sequences } = forgotten
    for (const sequence of sequences) this.#reported.set(keyOf(stream, sequence), { stream, sequence })
  }
}

function keyOf(stream: string, sequence: number): string {
  return `${stream}/${sequence}`
}
