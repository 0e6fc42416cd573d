import { expect, it } from 'vitest'
import { createProcessTelemetry } from '../../../src/processes/telemetry/process-telemetry.ts'
import { loadConfig } from '../../../src/config/load-config.ts'
import { newTraceId } from '../../../src/telemetry/trace-context.ts'

const COLLECTOR = ['--otlp-endpoint', 'http://127.0.0.1:1', '--log-level', 'silent']

/** How many of 40 new traces are taken, where a second takes 50 at most; and whether spans are kept at all. */
function taken(...flags: string[]): { readonly traces: number; readonly enabled: boolean } {
  const telemetry = createProcessTelemetry(loadConfig([...COLLECTOR, ...flags], {}), 'worker', 'a')
  const traces = Array.from({ length: 40 }, () => telemetry.sampler(undefined, newTraceId())).filter(Boolean).length
  return { traces, enabled: telemetry.spans().enabled }
}

it('tracesSampler, tracesSamplerArg and sdkDisabled say which traces are taken', () => {
  expect(taken()).toEqual({ traces: 40, enabled: true })
  expect(taken('--traces-sampler', 'always_off')).toEqual({ traces: 0, enabled: true })
  expect(taken('--traces-sampler', 'traceidratio', '--traces-sampler-arg', '0')).toEqual({ traces: 0, enabled: true })
  expect(taken('--traces-sampler', 'traceidratio').traces).toBe(40)
  expect(taken('--sdk-disabled')).toEqual({ traces: 0, enabled: false })
})

it('gives the page out without counters of the past until they are restored', async () => {
  const telemetry = createProcessTelemetry(loadConfig(['--log-level', 'silent'], {}), 'coordinator', 'a')
  let restored = (): void => {}
  const past = {
    metrics: ['queries', 'queryDuration'] as const,
    restore: () => new Promise<void>((resolve) => (restored = resolve)),
  }
  await telemetry.load(() => {}, past)
  const early = (await telemetry.meters().text()).body
  expect(early).toContain('quipu_writes_total')
  expect(early).toContain('# EOF')
  expect(early).not.toMatch(/quipu_queries_total|quipu_queries counter|quipu_query_duration/)
  restored()
  const late = (await telemetry.meters().text()).body
  for (const name of ['# TYPE quipu_queries counter', '# TYPE quipu_query_duration_seconds histogram'])
    expect(late).toContain(name)
})
