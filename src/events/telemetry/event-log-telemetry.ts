import { EventLogError, type AppendReport, type CommitReport, type Recorded, type LogEnd } from '../event-log.ts'
import type { KafkaRequest } from '../kafka/ports.ts'
import type { EventLogOptions } from '../folded-event-log.ts'
import type { Meters } from '../../telemetry/meters.ts'
import type { SpanSink } from '../../telemetry/span.ts'
import { entitySpanId, parseTraceparent, type TraceContext } from '../../telemetry/trace-context.ts'
import { tracedAppend } from './append-span.ts'
import type { TracedCommit } from './commit-spans.ts'
import { kafkaFault } from '../kafka/kafka-error.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { queryOfStream } from '../../shared/ids.ts'

export interface EventLogTelemetry {
  /** Callbacks for the log. */
  readonly hooks: EventLogHooks
  /** Must be called before each scrape, once the log is open. */
  observe(log: LogEnd, meters: Meters): Promise<void>
}

interface EventLogHooks extends EventLogOptions {
  readonly onKafkaRequest: (request: KafkaRequest) => void
}

export interface EventLogTelemetryDeps {
  readonly meters: () => Meters
  readonly spans: () => SpanSink
  /** Topic in Kafka; absent with the log in Postgres, where the time of an append is that of a statement. */
  readonly topic: string | undefined
  readonly onTrouble: (error: Error) => void
  /** Called for each event that became valid, for metrics of its own. */
  readonly onEvent: (event: Pick<Recorded, 'type' | 'data'>, meters: Meters) => void
}

/** Counts, times and traces appends, and reports whether the log takes them. */
export function createEventLogTelemetry(deps: EventLogTelemetryDeps): EventLogTelemetry {
  let troubled = false

  function appended(report: AppendReport): void {
    troubled = false
    const meters = deps.meters()
    const context = parseTraceparent(report.traceparent)
    const trace = context && appendSpanOf(report.stream, report.sequence, context)
    for (const event of report.events) {
      meters.count('eventsAppended', { event: event.type })
      deps.onEvent(event, meters)
    }
    meters.count('eventBytes', {}, report.bytes)
    meters.observe('eventAppendDuration', { step: 'queue' }, report.queueMs / 1000, trace)
    meters.observe('eventAppendDuration', { step: 'send' }, report.sendMs / 1000, trace)
    meters.observe('eventAppendDuration', { step: 'read_back' }, report.readBackMs / 1000, trace)
    if (report.events[0]?.type === 'QueryCreated')
      meters.observe(
        'queryPhaseDuration',
        { phase: 'append' },
        (report.queueMs + report.sendMs + report.readBackMs) / 1000,
        trace,
      )
    if (deps.topic === undefined) meters.observe('postgresQueryDuration', { operation: 'append' }, report.sendMs / 1000)
    if (trace && context && deps.spans().enabled)
      deps.spans().later(tracedAppend(report, { ...trace, parentSpanId: context.spanId }))
  }

  function committed(report: CommitReport): void {
    if (!deps.spans().enabled) return
    const appends = report.appends.flatMap(({ stream, sequence, traceparent }) => {
      const span = appendSpanOf(stream, sequence, parseTraceparent(traceparent))
      return span ? [{ queryId: queryOfStream(stream), ...span }] : []
    })
    if (appends.length === 0) return
    const { partition, records, sendMs, readBackMs } = report
    const source: TracedCommit = {
      kind: 'commit',
      topic: deps.topic,
      partition,
      offset: Number(report.offset),
      records,
      appends,
      sendMs,
      readBackMs,
      endMs: Date.now(),
    }
    deps.spans().later(source)
  }

  return {
    hooks: {
      onAppended: appended,
      onCommitted: committed,
      onAppendRefused: (error) => deps.meters().count('eventAppendFailures', { reason: reasonOf(error) }),
      onKafkaRequest({ api, milliseconds, error }) {
        deps.meters().observe('kafkaRequestDuration', { api }, milliseconds / 1000)
        if (error !== undefined) deps.meters().count('kafkaErrors', { kind: kafkaFault(error) })
      },
      onIgnored: (verdict) => deps.meters().count('eventsIgnored', { reason: verdict }),
      onTrouble(error) {
        troubled = true
        deps.meters().count('eventAppendFailures', { reason: reasonOf(error) })
        deps.onTrouble(error)
      },
    },
    async observe(log, meters) {
      // The log counts as down until it answers, or an append succeeds.
      meters.set('logUp', {}, troubled ? 0 : 1)
      if (!troubled) return
      await log.tip()
      troubled = false
      meters.set('logUp', {}, 1)
    },
  }
}

/** The span of a traced append. Its id is derived from the append, so that spans of other work can link to it. */
function appendSpanOf(
  stream: string,
  sequence: number,
  context: TraceContext | undefined,
): { readonly traceId: string; readonly spanId: string } | undefined {
  if (!context?.sampled) return undefined
  return { traceId: context.traceId, spanId: entitySpanId('append', `${stream}/${sequence}`) }
}

function reasonOf(error: Error): string {
  if (!(error instanceof EventLogError)) return 'unknown'
  switch (error.kind) {
    case 'fenced':
    case 'conflict':
    case 'too_large':
    case 'unstorable':
    case 'backwards':
    case 'unavailable':
      return error.kind
    // A log with such an error is never opened, so nothing is appended to it.
    case 'changed':
    case 'misconfigured':
    case 'unforgettable':
      return 'unknown'
    default:
      return unreachable(error.kind)
  }
}
