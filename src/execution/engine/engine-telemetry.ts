import type { EngineEvent, EnginePool } from './engine.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { Meters } from '../../telemetry/meters.ts'

/** Turns the events of an engine pool into metrics and log lines. */
export function createEngineEvents(meters: () => Meters, logger: Logger): (event: EngineEvent) => void {
  return (event) => {
    switch (event.type) {
      case 'started':
        return
      case 'refused':
        return logger.error(
          'task.trouble',
          { statement: event.statement, engineError: event.message },
          'An engine refused a statement because it does not have the form of rendered statements',
        )
      case 'closed':
        return logger.error(
          'task.trouble',
          { statement: event.statement, engineUser: event.user, engineError: event.message },
          'The user of an engine may not open a file: let other users read it (chmod o+r)',
        )
      case 'canceled':
        return meters().observe('cancelDuration', { how: event.how }, event.milliseconds / 1000)
      case 'statement':
        meters().observe('engineStatementDuration', { kind: event.kind }, event.milliseconds / 1000)
        return meters().count('spilledBytes', {}, event.spilledBytes)
      case 'ended': {
        if (event.reason === 'stopped') return
        meters().count('engineRestarts', { reason: event.reason })
        const { type: _, ...about } = event
        return logger.warn('engine.killed', about, `An engine ended: ${event.reason}`)
      }
      default:
        throw new Error(`Unknown engine event: ${JSON.stringify(event satisfies never)}`)
    }
  }
}

/** The longest time that a scrape waits for an engine, milliseconds: a busy engine answers at the next scrape. */
const MEMORY_MS = 400

/** Observes the memory that DuckDB counts, by purpose, of all engines of the process together. */
export function observeDuckDbMemory(engines: Pick<EnginePool, 'memory'>, meters: Meters): void {
  meters.onScrape(async () => {
    for (const [tag, bytes] of Object.entries(await engines.memory(MEMORY_MS)))
      meters.set('duckdbMemoryBytes', { tag }, bytes)
  })
}

/** Sets the gauges of a pool's children, before each scrape. */
export function observeEngines(engines: Pick<EnginePool, 'children'>, killBytes: number, meters: Meters): void {
  const children = engines.children()
  for (const state of ['starting', 'spare', 'idle', 'busy'] as const)
    meters.set('engineChildren', { state }, children.filter((one) => one.state === state).length)
  // Slots of engines that are gone must not stay in the metrics.
  meters.unset('engineResidentMemoryBytes')
  for (const { slot, residentBytes } of children)
    meters.set('engineResidentMemoryBytes', { slot: String(slot) }, residentBytes)
  meters.set('engineMemoryLimitBytes', {}, killBytes)
}
