import { availableParallelism } from 'node:os'
import { afterEach, expect, it, vi } from 'vitest'
import { createProcessTelemetry } from '../../../src/processes/telemetry/process-telemetry.ts'
import { loadConfig } from '../../../src/config/load-config.ts'
import { newTraceId } from '../../../src/telemetry/trace-context.ts'

afterEach(() => void vi.useRealTimers())

const COLLECTOR = ['--otlp-endpoint', 'http://127.0.0.1:1', '--log-level', 'silent', '--traces-per-second', '40']

/** How many of 40 new traces are sampled, with a limit of 40 a second, and whether spans are kept at all. */
function taken(...flags: string[]): { readonly traces: number; readonly enabled: boolean } {
  const telemetry = createProcessTelemetry(loadConfig([...COLLECTOR, ...flags], {}), 'worker', 'a')
  const traces = Array.from({ length: 40 }, () => telemetry.sampler(undefined, newTraceId())).filter(Boolean).length
  return { traces, enabled: telemetry.spans().enabled }
}

it('tracesSampler, tracesSamplerArg and sdkDisabled decide which traces are sampled', () => {
  expect(taken()).toEqual({ traces: 40, enabled: true })
  expect(taken('--traces-sampler', 'always_off')).toEqual({ traces: 0, enabled: true })
  expect(taken('--traces-sampler', 'traceidratio', '--traces-sampler-arg', '0')).toEqual({ traces: 0, enabled: true })
  expect(taken('--traces-sampler', 'traceidratio').traces).toBe(40)
  expect(taken('--sdk-disabled')).toEqual({ traces: 0, enabled: false })
})

it('tracesPerSecond limits the number of new traces', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const telemetryOf = (...flags: string[]) =>
    createProcessTelemetry(loadConfig(['--otlp-endpoint', 'http://127.0.0.1:1', ...flags], {}), 'worker', 'a')
  const [bounded, byCores] = [telemetryOf('--traces-per-second', '30'), telemetryOf()]
  const takenBy = (take: () => boolean): number => Array.from({ length: 1000 }, take).filter(Boolean).length
  for (let second = 0; second < 2; second++) {
    expect(takenBy(() => bounded.sampler(undefined, newTraceId()))).toBe(30)
    expect(takenBy(() => byCores.sampler(undefined, newTraceId()))).toBe(Math.min(50, 10 * availableParallelism()))
    vi.advanceTimersByTime(1000)
  }
})

it('telemetry profiles all small tasks at a low rate, and one a second at a high rate, with or without spans', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const cores = availableParallelism()
  for (const flags of [['--otlp-endpoint', 'http://127.0.0.1:1', '--traces-per-second', '1'], ['--sdk-disabled']]) {
    const { profiles } = createProcessTelemetry(loadConfig(flags, {}), 'coordinator', 'a')
    /** How many of this number of tasks are profiled, spread evenly over a second. */
    const profiled = (tasks: number): number =>
      Array.from({ length: tasks }, () => {
        vi.advanceTimersByTime(1000 / tasks)
        return profiles(1)
      }).filter(Boolean).length
    expect(Array.from({ length: 20 * cores }, () => profiles(4 * cores)).every(Boolean)).toBe(true)
    vi.advanceTimersByTime(10_000)
    for (let second = 0; second < 60; second++) expect(profiled(4 * cores)).toBe(4 * cores)
    for (let second = 0; second < 20; second++) profiled(20 * cores)
    for (let second = 0; second < 5; second++) expect(profiled(20 * cores)).toBe(1)
    vi.advanceTimersByTime(1000)
    expect(profiled(4 * cores)).toBe(4 * cores)
    // On a slow machine a high load is few statements a second, of which many run at once.
    vi.advanceTimersByTime(10_000)
    expect(Array.from({ length: 10 }, () => profiles(4 * cores + 1)).filter(Boolean)).toHaveLength(1)
  }
})

it('/metrics leaves out the counters of earlier processes until they are restored', async () => {
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
