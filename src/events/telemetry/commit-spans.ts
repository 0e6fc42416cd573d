import type { QueryId } from '../../shared/ids.ts'
import { attributes as names } from '../../telemetry/attribute-names.ts'
import { MOST_LINKS } from '../../telemetry/root-span.ts'
import type { SpanRecord } from '../../telemetry/span.ts'
import { newSpanId, newTraceId } from '../../telemetry/trace-context.ts'

/** A group of appends that the log committed at once, some of them of traced queries. */
export interface TracedCommit {
  readonly kind: 'commit'
  /** The Kafka topic; absent with the log in Postgres. */
  readonly topic: string | undefined
  readonly partition: number
  /** Offset of the last record. */
  readonly offset: number
  readonly records: number
  /** Spans of the traced appends. */
  readonly appends: readonly AppendSpan[]
  readonly sendMs: number
  readonly readBackMs: number
  /** Wall clock, milliseconds. */
  readonly endMs: number
}

interface AppendSpan {
  readonly queryId: QueryId
  readonly traceId: string
  readonly spanId: string
}

/**
 * Spans of the log's own work for a group of appends. In Postgres it is one statement, a child of the first append; in
 * Kafka the records are sent and read back, each as a trace of its own. All are linked to the appends that they served.
 */
export function commitSpans(commit: TracedCommit): readonly SpanRecord[] {
  const { topic, appends, endMs, sendMs, readBackMs } = commit
  const links = appends.slice(0, MOST_LINKS).map(({ traceId, spanId }) => ({ traceId, spanId }))
  const acknowledged = endMs - readBackMs
  if (topic === undefined) {
    const [first, ...others] = links
    if (!first) return []
    const statement = sqlSpan('INSERT', 'events')
    return [
      {
        ...statement,
        attributes: { ...statement.attributes, [names.queryId]: appends[0]!.queryId },
        traceId: first.traceId,
        parentSpanId: first.spanId,
        startMs: acknowledged - sendMs,
        endMs: acknowledged,
        links: others,
      },
    ]
  }
  const about = {
    [names.messagingSystem]: 'kafka',
    [names.messagingDestination]: topic,
    [names.messagingPartition]: String(commit.partition),
    [names.messagingCount]: commit.records,
    [names.kafkaOffset]: commit.offset,
  }
  const span = (
    verb: 'send' | 'read-back',
    kind: SpanRecord['kind'],
    type: string,
    startMs: number,
    until: number,
  ): SpanRecord => ({
    name: `${verb} ${topic}`,
    kind,
    traceId: newTraceId(),
    spanId: newSpanId(),
    startMs,
    endMs: until,
    attributes: { ...about, [names.messagingOperation]: verb, [names.messagingOperationType]: type },
    status: 'UNSET',
    events: [],
    links,
  })
  return [
    span('send', 'PRODUCER', 'send', acknowledged - sendMs, acknowledged),
    span('read-back', 'CLIENT', 'receive', acknowledged, endMs),
  ]
}

/**
 * Limit of a statement's text: the projection's statements name every column of their table, but their beginning
 * identifies them.
 */
const MOST_TEXT = 256

/** The span of a statement in Postgres, as its client sees it; the caller adds trace, parent and times. */
export function sqlSpan(
  operation: string,
  table: string,
  text?: string,
): Pick<SpanRecord, 'name' | 'kind' | 'spanId' | 'attributes' | 'status' | 'events'> {
  const summary = `${operation} ${table}`
  return {
    name: summary,
    kind: 'CLIENT',
    spanId: newSpanId(),
    attributes: {
      [names.dbSystem]: 'postgresql',
      [names.dbOperation]: operation,
      [names.dbCollection]: table,
      [names.dbSummary]: summary,
      // The statement is parameterised: its text contains no values.
      ...(text === undefined ? {} : { [names.dbText]: text.replaceAll(/\s+/g, ' ').trim().slice(0, MOST_TEXT) }),
    },
    status: 'UNSET',
    events: [],
  }
}
