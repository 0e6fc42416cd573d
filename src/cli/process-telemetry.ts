import type { Config } from '../config/load-config.ts'
import { createLogger, type Logger } from '../telemetry/logger.ts'
import { createMeters, noMeters, type Meters } from '../telemetry/meters.ts'
import { noSpans, type SpanSink } from '../telemetry/span.ts'
import { version } from './version.ts'

/** What a process tells of itself. Meters and spans come once it serves: loading them takes longer than all else. */
export interface ProcessTelemetry {
  readonly logger: Logger
  meters(): Meters
  spans(): SpanSink
  /** Part of the traces that are taken when the client does not say. */
  readonly sampleRatio: number
  /** Loads what was put off; `ready` is called with the meters, to hang collectors on. */
  load(ready: (meters: Meters) => void): Promise<void>
  stop(): Promise<void>
}

export function createProcessTelemetry(
  config: Config,
  service: 'coordinator' | 'worker',
  instance: string,
): ProcessTelemetry {
  const { telemetry } = config
  const logger = createLogger({ level: config.logLevel, service: `quipu-${service}`, instance, version })
  let meters: Meters = noMeters
  let spans: SpanSink = noSpans
  const exporting =
    !telemetry.sdkDisabled && (telemetry.otlpEndpoint !== undefined || telemetry.otlpTracesEndpoint !== undefined)
  return {
    logger,
    meters: () => meters,
    spans: () => spans,
    sampleRatio: sampleRatio(telemetry.tracesSampler, telemetry.tracesSamplerArg, exporting),
    async load(ready) {
      meters = await createMeters({ on: service, processMetrics: true })
      meters.set(
        'buildInfo',
        { version, revision: 'unknown', node: process.versions.node, duckdb: '1.5.6', log: logKind(config) },
        1,
      )
      ready(meters)
      if (!exporting || service === 'worker') return
      const { startSpanExport } = await import('../telemetry/otlp-spans.ts')
      spans = await startSpanExport({
        serviceName: telemetry.serviceName ?? `quipu-${service}`,
        instance,
        version,
        environment: config.environment,
        onSpans: (result, count) => meters.count('spans', { result }, count),
      })
    },
    stop: () => spans.stop(),
  }
}

/** The standard variables; nothing is taken where nobody collects, since a taken trace switches the profiler on. */
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
