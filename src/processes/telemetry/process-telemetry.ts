import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../../config/load-config.ts'
import { namedValues } from '../../config/setting.ts'
import { settingList } from '../../config/setting-list.ts'
import { createLogger, type Logger } from '../../telemetry/logger.ts'
import type { SpanCollector } from '../../telemetry/otlp-spans.ts'
import { createMeters, createPendingMeters, type Meters } from '../../telemetry/meters.ts'
import type { MetricName } from '../../telemetry/metric-names.ts'
import { createQuietBudget } from '../../telemetry/quiet-budget.ts'
import { reportedError } from '../../telemetry/reported-error.ts'
import { createSampler, type Sampler } from '../../telemetry/sampler.ts'
import { createPendingSpans, noSpans, type SpanSink } from '../../telemetry/span.ts'
import { duckdbVersion, revision, version } from '../../shared/version.ts'

/**
 * The telemetry of a process. Meters and spans are loaded after it serves, because loading them takes longer than the
 * rest of the start.
 */
export interface ProcessTelemetry {
  readonly logger: Logger
  /** Measurements before the load are kept and added later. */
  meters(): Meters
  spans(): SpanSink
  readonly sampler: Sampler
  /**
   * Whether another small task may be profiled now, traced or not, while this many tasks run. Called once for each
   * task.
   */
  readonly profiles: (running: number) => boolean
  /**
   * Loads meters and spans. Calls `ready` with the meters, so that it can register collectors. Counters of the past are
   * not exposed before they are restored or restoring has failed: a jump of a visible counter would count as events. A
   * second call, for another role of the process, restores nothing, because the metrics were exposed before.
   */
  load(ready: (meters: Meters) => void, past?: PastCounters): Promise<void>
  stop(): Promise<void>
}

/** Counters that continue where previous processes left them. */
export interface PastCounters {
  readonly metrics: readonly MetricName[]
  restore(meters: Meters): Promise<void>
}

/**
 * A trace takes up to five milliseconds of CPU, in all processes together. These limits allow a twentieth of the CPU
 * for traces.
 */
const TRACES_A_CORE = 10
const MOST_TRACES = 50
/**
 * How many small tasks are profiled: all tasks of people and tools, and one a second in a flood. A profile adds a
 * fifth to the CPU time of such a statement.
 */
const PROFILES_A_CORE = { burst: 20, perSecond: 5, running: 4 }

/** `/metrics` waits at most this long for counters of the past, then leaves them out. */
const RESTORED_SOON_MS = 1_000

export function createProcessTelemetry(
  config: Config,
  service: 'coordinator' | 'worker',
  instance: string,
): ProcessTelemetry {
  const { telemetry } = config
  const logger = createLogger({ level: config.logLevel, service: `quipu-${service}`, instance, version })
  // On a worker these are the spans of its requests. The coordinator makes the spans of tasks from the figures in their
  // events.
  const collector = collectorOf(telemetry)
  const exporting = collector !== undefined
  const cores = availableParallelism()
  const ceiling = telemetry.tracesPerSecond ?? Math.min(MOST_TRACES, TRACES_A_CORE * cores)
  const pendingMeters = createPendingMeters()
  const pendingSpans = createPendingSpans()
  let meters: Meters = pendingMeters
  let spans: SpanSink = exporting ? pendingSpans : noSpans
  let loading: Promise<Meters> | undefined

  async function exportSpans(collector: SpanCollector): Promise<void> {
    const { startThreadedSpans } = await import('../../telemetry/threaded-spans.ts')
    spans = startThreadedSpans({
      program: new URL('./span-thread.js', import.meta.url),
      env: withoutSettings(process.env),
      collector,
      serviceName: telemetry.serviceName ?? `quipu-${service}`,
      instance,
      version,
      environment: config.environment,
      onSpans: (result, count) => meters.count('spans', { result }, count),
      onTrouble: (error) => logger.warn('telemetry.trouble', { err: error }, 'The thread that sends spans ended'),
    })
    pendingSpans.replay(spans)
  }

  return {
    logger,
    meters: () => meters,
    spans: () => spans,
    sampler: createSampler({
      perSecond: ceiling,
      ratio: sampleRatio(telemetry.tracesSampler, telemetry.tracesSamplerArg, exporting),
      monotonicMs: () => performance.now(),
    }),
    profiles: createQuietBudget({
      burst: PROFILES_A_CORE.burst * cores,
      perSecond: PROFILES_A_CORE.perSecond * cores,
      running: PROFILES_A_CORE.running * cores,
      monotonicMs: () => performance.now(),
    }),
    async load(ready, past) {
      if (loading) return ready(await loading)
      loading = createMeters({ on: service, processMetrics: true })
      const loaded = await loading
      loaded.set(
        'buildInfo',
        { version, revision, node: process.versions.node, duckdb: duckdbVersion, log: logKind(config) },
        1,
      )
      ready(loaded)
      const whole = past
        ?.restore(loaded)
        .catch((error: unknown) =>
          logger.info(
            'telemetry.trouble',
            { reason: reportedError(error).message },
            'Counters begin at 0: the counters of the previous coordinator could not be read',
          ),
        )
      meters = past && whole ? { ...loaded, text: textOnce(loaded, whole, past.metrics) } : loaded
      pendingMeters.replay(loaded)
      if (collector) await exportSpans(collector)
    },
    stop: () => spans.stop(),
  }
}

/** The text of all metrics once `restored` has settled; until then, without the metrics to restore. */
function textOnce(meters: Meters, restored: Promise<void>, metrics: readonly MetricName[]): Meters['text'] {
  let settled = false
  const whole = restored.then(() => void (settled = true))
  return async () => {
    await Promise.race([whole, sleep(RESTORED_SOON_MS, undefined, { ref: false })])
    return meters.text(settled ? [] : metrics)
  }
}

/** Where the settings send spans; undefined if they send none. */
function collectorOf(telemetry: Config['telemetry']): SpanCollector | undefined {
  const { sdkDisabled, otlpEndpoint, otlpTracesEndpoint, otlpHeaders, resourceAttributes } = telemetry
  const url = otlpTracesEndpoint ?? (otlpEndpoint && `${otlpEndpoint.replace(/\/+$/, '')}/v1/traces`)
  if (sdkDisabled || url === undefined) return undefined
  return { url, headers: namedValues(otlpHeaders), resourceAttributes: namedValues(resourceAttributes) }
}

/**
 * The environment without Quipu's settings. The exporter reads the same variables, and must not use one that a flag
 * overrides.
 */
function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const own = new Set(settingList.map((setting) => setting.env))
  return Object.fromEntries(Object.entries(env).filter(([name]) => !own.has(name)))
}

/** The sampling ratio by the standard variables; 0 if no collector is set. */
function sampleRatio(sampler: string | undefined, argument: string | undefined, exporting: boolean): number {
  if (!exporting) return 0
  switch (sampler) {
    case 'always_off':
    case 'parentbased_always_off':
      return 0
    case 'traceidratio':
    case 'parentbased_traceidratio': {
      const ratio = Number(argument ?? 1)
      return ratio >= 0 && ratio <= 1 ? ratio : 1
    }
    default:
      return 1
  }
}

function logKind(config: Config): string {
  return config.kafkaBrokers.length > 0 ? 'kafka' : 'postgres'
}
