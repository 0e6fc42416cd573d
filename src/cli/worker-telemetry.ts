import type { EngineEvent, EnginePool } from '../execution/engine/engine.ts'
import type { TaskManager } from '../execution/worker/task-manager.ts'
import type { WorkerEvent } from '../execution/worker/worker-events.ts'
import { EngineError } from '../shared/engine-error.ts'
import { unreachable } from '../shared/unreachable.ts'
import { translateError } from '../sql/functions/runtime-errors.ts'
import type { Meters } from '../telemetry/meters.ts'
import { parseTraceparent } from '../telemetry/trace-context.ts'
import type { ProcessTelemetry } from './process-telemetry.ts'

const NANOS = 1e9
/** Announcements in a row without an answer, one a second, until the log tells of it. */
const UNANSWERED = 5
const ENGINE_STATES = ['starting', 'spare', 'busy'] as const

/** A worker's tasks as metrics and log lines; spans are made by the coordinator, from the tasks' statistics. */
export function onWorkerEvent({ meters, logger }: ProcessTelemetry): (event: WorkerEvent) => void {
  const unanswered = new Map<string, number>()
  return (event) => {
    switch (event.type) {
      case 'taskCreated':
        return
      case 'pageListed':
        return meters().count('pagesSpooled', { kind: 'result' })
      case 'batchEnded': {
        const { figures } = event
        if (!figures) return
        meters().observe('engineStatementDuration', { kind: 'fragment' }, figures.wallNanos / NANOS)
        if (figures.spilledBytes > 0) meters().count('spilledBytes', {}, figures.spilledBytes)
        if (figures.blockedNanos > 0) {
          meters().count('exchangeBlockedSeconds', { side: 'producer' }, figures.blockedNanos / NANOS)
        }
        for (const { operators } of figures.pipelines ?? []) {
          for (const { operatorType, timeNanos } of operators) {
            meters().count('operatorTimeSeconds', { operator: operatorType }, timeNanos / NANOS)
          }
        }
        return
      }
      case 'taskEnded': {
        const { state, stats } = event.status
        if (state === 'PLANNED' || state === 'RUNNING' || state === 'FLUSHING') return
        const trace = parseTraceparent(event.traceparent)
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
        // Told of once, and not while both are starting.
        if (count !== UNANSWERED) return
        return logger.warn('announcement.failed', { url: event.url, err: event.error }, 'A coordinator does not answer')
      }
      case 'coordinatorSilent':
        return logger.warn('task.trouble', { tasks: event.tasksDropped }, 'No coordinator was heard: tasks are dropped')
      case 'failedOutside':
        return logger.error('task.trouble', { what: event.what, err: event.error }, 'Something failed that should not')
      default:
        return unreachable(event)
    }
  }
}

export function onEngineEvent({ meters, logger }: ProcessTelemetry): (event: EngineEvent) => void {
  return (event) => {
    switch (event.type) {
      case 'started':
        return
      case 'ended': {
        const { reason, slot, pid, statements } = event
        if (reason === 'stopped') return
        meters().count('engineRestarts', { reason })
        return logger.warn('engine.killed', { reason, slot, pid, statements }, 'An engine ended and is replaced')
      }
      case 'canceled':
        return meters().observe('cancelDuration', { how: event.how }, event.milliseconds / 1000)
      default:
        return unreachable(event)
    }
  }
}

/** DuckDB's error in Trino's words; what has none is kept for the log, since its text never reaches a client. */
export function translateAndLog({ logger }: ProcessTelemetry): (text: string) => EngineError {
  return (text) => {
    const error = translateError(text)
    if (error.errorName === 'GENERIC_INTERNAL_ERROR') {
      logger.error('task.trouble', { engineError: text }, 'The engine failed on a statement')
    }
    return error
  }
}

export interface WorkerGauges {
  readonly engines: EnginePool
  readonly tasks: TaskManager
  readonly pageStoreBytes: number
  readonly engineMemoryBytes: number
}

/** Gauges that are read at each scrape. */
export function collectWorker(
  meters: Meters,
  { engines, tasks, pageStoreBytes, engineMemoryBytes }: WorkerGauges,
): void {
  meters.set('pageStoreLimitBytes', { kind: 'result' }, pageStoreBytes)
  meters.set('engineMemoryLimitBytes', {}, engineMemoryBytes)
  meters.onScrape(() => {
    meters.set('pageStoreBytes', { kind: 'result' }, tasks.usage().pageBytes)
    const children = engines.children()
    for (const state of ENGINE_STATES) {
      meters.set('engineChildren', { state }, children.filter((child) => child.state === state).length)
    }
    for (const { slot, residentBytes } of children) {
      meters.set('engineResidentMemoryBytes', { slot: String(slot) }, residentBytes)
    }
  })
}
