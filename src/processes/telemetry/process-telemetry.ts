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

/** What a process tells of itself. Meters and spans come once it serves: loading them takes longer than all else. */
export interface ProcessTelemetry {
  readonly logger: Logger
  /** What is told before they are loaded is kept. */
  meters(): Meters
  spans(): SpanSink
  readonly sampler: Sampler
  /** Whether one more small task may be profiled now, traced or not, while so many tasks run; asked once for each. */
  readonly profiles: (running: number) => boolean
  /**
   * Loads what was put off; `ready` is called with the meters, to hang collectors on. Counters of the past are not given out
   * before they are restored, or cannot be: one that is seen to jump would count as events. Nor is anything restored at a
   * second call, of a process that takes another role: its page was given out before.
   */
  load(ready: (meters: Meters) => void, past?: PastCounters): Promise<void>
  stop(): Promise<void>
}

/** Counters that go on where processes before this one left them. */
export interface PastCounters {
  readonly metrics: readonly MetricName[]
  restore(meters: Meters): Promise<void>
}

/** A trace takes up to five milliseconds of CPU in all processes together: these a twentieth of it. */
const TRACES_A_CORE = 10
const MOST_TRACES = 50
/**
 * Small tasks that are profiled: those of people and tools all are, of a flood one a second. A profile adds a fifth to the CPU
 * of such a statement.
 */
const PROFILES_A_CORE = { burst: 20, perSecond: 5, running: 4 }

/** A page of metrics waits no longer for counters of the past: it is given out without them. */
const RESTORED_SOON_MS = 1_000

export function createProcessTelemetry(
  config: Config,
  service: 'coordinator' | 'worker',
  instance: string,
): ProcessTelemetry {
  const { telemetry } = config
  const logger = createLogger({ level: config.logLevel, service: `quipu-${service}`, instance, version })
  // Of a worker these are its requests': the coordinator makes those of tasks of the figures that their events carry.
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
            'Counters begin at 0: those of the coordinator before could not be read',
          ),
        )
      meters = past && whole ? { ...loaded, text: textOnce(loaded, whole, past.metrics) } : loaded
      pendingMeters.replay(loaded)
      if (collector) await exportSpans(collector)
    },
    stop: () => spans.stop(),
  }
}

/** The whole page once `restored` has settled, until then what is left of it. */
function textOnce(meters: Meters, restored: Promise<void>, metrics: readonly MetricName[]): Meters['text'] {
  let settled = false
  const whole = restored.then(() => void (settled = true))
  return async () => {
    await Promise.race([whole, sleep(RESTORED_SOON_MS, undefined, { ref: false })])
    return meters.text(settled ? [] : metrics)
  }
}

/** Where the settings send spans to; undefined where they send none. */
function collectorOf(telemetry: Config['telemetry']): SpanCollector | undefined {
  const { sdkDisabled, otlpEndpoint, otlpTracesEndpoint, otlpHeaders, resourceAttributes } = telemetry
  const url = otlpTracesEndpoint ?? (otlpEndpoint && `${otlpEndpoint.replace(/\/+$/, '')}/v1/traces`)
  if (sdkDisabled || url === undefined) return undefined
  return { url, headers: namedValues(otlpHeaders), resourceAttributes: namedValues(resourceAttributes) }
}

/** The exporter reads the same variables: those that a flag overrules must not come in by its door. */
function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const own = new Set(settingList.map((setting) => setting.env))
  return Object.fromEntries(Object.entries(env).filter(([name]) => !own.has(name)))
}

/** The standard variables; nothing is taken where nobody collects. */
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
