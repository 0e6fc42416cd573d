import type { EnginePool } from '../engine/engine.ts'
import { engineSpan } from './engine-span.ts'
import type { TaskManager } from './task-manager.ts'
import type { WorkerEvent } from './worker-events.ts'
import { unreachable } from '../../shared/unreachable.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { Meters } from '../../telemetry/meters.ts'
import type { SpanSink } from '../../telemetry/span.ts'
import { entitySpanId, parseTraceparent } from '../../telemetry/trace-context.ts'
import { observeDuckDbMemory, observeEngines } from '../engine/engine-telemetry.ts'

const NANOS = 1e9
/** Unanswered announcements in a row, at one a second, before the log reports the coordinator. */
const UNANSWERED = 5

/**
 * Turns a worker's events into metrics, log lines and spans of its engines; the coordinator makes the other spans of
 * tasks.
 */
export function onWorkerEvent(
  { meters, logger, spans }: { readonly meters: () => Meters; readonly logger: Logger; readonly spans: () => SpanSink },
  connectorOf: (catalog: string) => string,
): (event: WorkerEvent) => void {
  const unanswered = new Map<string, number>()
  return (event) => {
    switch (event.type) {
      case 'taskCreated':
        return
      case 'pageListed':
        return meters().count('pagesSpooled', { kind: 'result' })
      case 'batchEnded': {
        const { figures, catalogs, splits } = event
        const span = spans().enabled ? engineSpan(event) : undefined
        if (span) spans().emit([span])
        if (!figures) return
        for (const catalog of catalogs) {
          const seconds = figures.wallNanos / NANOS / Math.max(1, splits)
          meters().observe('splitDuration', { connector: connectorOf(catalog) }, seconds)
        }
        if (figures.blockedNanos > 0) {
          meters().count('exchangeBlockedSeconds', { side: 'producer' }, figures.blockedNanos / NANOS)
        }
        for (const { operators } of figures.pipelines ?? []) {
          for (const { engineOperator, timeNanos } of operators) {
            meters().count('operatorTimeSeconds', { operator: engineOperator }, timeNanos / NANOS)
          }
        }
        return
      }
      case 'taskEnded': {
        const { state, stats } = event.status
        if (state === 'PLANNED' || state === 'RUNNING' || state === 'FLUSHING') return
        // The traceparent of the POST is the stage's span; the span id of the task is derived from the task id.
        const stage = parseTraceparent(event.traceparent)
        const trace = stage?.sampled
          ? { traceId: stage.traceId, spanId: entitySpanId('task', event.status.taskId) }
          : undefined
        return meters().observe('taskDuration', { state }, stats.elapsedNanos / NANOS, trace)
      }
      case 'pageRead':
        return meters().count('exchangeBytes', { direction: 'sent' }, event.bytes)
      case 'pageLost':
        return meters().count('pagesLost', { kind: 'result' })
      case 'announced':
        unanswered.delete(event.url)
        return
      case 'announcementFailed': {
        const count = (unanswered.get(event.url) ?? 0) + 1
        unanswered.set(event.url, count)
        // The worker logs this once, and not while it and the coordinator start.
        if (count !== UNANSWERED) return
        return logger.warn('announcement.failed', { url: event.url, err: event.error }, 'A coordinator does not answer')
      }
      case 'coordinatorSilent':
        return logger.warn(
          'task.trouble',
          { tasks: event.tasksDropped },
          'The worker had no contact to a coordinator for too long: it drops its tasks',
        )
      case 'failedOutside':
        return logger.error(
          'task.trouble',
          { what: event.what, err: event.error },
          'An unexpected internal error occurred',
        )
      default:
        return unreachable(event)
    }
  }
}

export interface WorkerGauges {
  readonly engines: EnginePool
  readonly tasks: TaskManager
  readonly pageStoreBytes: number
  /** Resident memory above which an engine is killed. */
  readonly engineKillBytes: number
}

/** Gauges that are read at each scrape. */
export function collectWorker(meters: Meters, { engines, tasks, pageStoreBytes, engineKillBytes }: WorkerGauges): void {
  meters.set('pageStoreLimitBytes', { kind: 'result' }, pageStoreBytes)
  observeDuckDbMemory(engines, meters)
  meters.onScrape(() => {
    const { pageBytes, running } = tasks.usage()
    meters.set('pageStoreBytes', { kind: 'result' }, pageBytes)
    meters.set('workerTasks', {}, running)
    meters.set('ready', {}, 1)
    observeEngines(engines, engineKillBytes, meters)
  })
}
