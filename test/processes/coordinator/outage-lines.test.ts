import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createOutageLines } from '../../../src/processes/health/outage-lines.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('an outage is logged as a warning, and as an error when it lasts', () => {
  const lines: unknown[] = []
  const line = (level: string) => (name: string, fields: object) => void lines.push([level, name, fields])
  const clock = { monotonicMs: () => Date.now() }
  const report = createOutageLines({ info: line('info'), warn: line('warn'), error: line('error') }, clock)
  report('log', 'up')
  report('log', 'down')
  report('log', 'down')
  vi.advanceTimersByTime(700)
  report('log', 'up')
  vi.advanceTimersByTime(60_000)
  expect(lines).toEqual([
    ['warn', 'dependency.down', { dependency: 'log' }],
    ['info', 'dependency.up', { dependency: 'log', downMillis: 700 }],
  ])
  lines.length = 0
  report('database', 'down')
  vi.advanceTimersByTime(60_000)
  expect(lines).toEqual([
    ['warn', 'dependency.down', { dependency: 'database' }],
    ['error', 'dependency.down', { dependency: 'database' }],
  ])
})
