import { coordinatorFolder } from '../../config/data-folders.ts'
import { allowedDirectories } from '../../connectors/spi/catalog-files.ts'
import type { Catalogs } from '../../connectors/spi/catalogs.ts'
import { withSystemCatalog, type SystemSources } from '../../connectors/system/system-connector.ts'
import type { EnginePool, EngineSettings } from '../../execution/engine/engine.ts'
import { createEnginePool } from '../../execution/engine/engine-pool.ts'
import { createEngineEvents } from '../../execution/engine/engine-telemetry.ts'
import { historyTables } from '../../readmodels/history/tables.ts'
import { translateError } from '../../sql/functions/runtime-errors.ts'
import type { ChildLife } from '../child-life.ts'
import { configuredCatalogs } from '../connector-factories.ts'
import { engineSettings } from '../engine-settings.ts'
import type { ProcessTelemetry } from '../telemetry/process-telemetry.ts'

/** The catalogs for planning, and the engine that runs the coordinator's own part of a plan. */
export interface WiredEngine {
  /** The catalogs of this server, and those of clusters once `useClusters` was called. */
  readonly catalogs: Catalogs
  /** The catalogs of this server alone. */
  readonly localCatalogs: Catalogs
  readonly engine: EnginePool
  readonly engineUse: EngineSettings
  /** Resolves when the engine has started; rejects if it cannot start. */
  readonly engineStarted: Promise<void>
  /** Sets the sources of `system.runtime` and `system.history`. Until then they cannot be read. */
  useSystem(sources: SystemSources): void
  /** Adds the catalogs of clusters. */
  useClusters(catalogs: Catalogs): void
}

/**
 * Makes the catalogs and the coordinator's engine. Each of them uses the other.
 * @throws ExitError 64 when a catalog file is broken
 */
export function wireEngine(
  life: Pick<ChildLife, 'config' | 'engines'>,
  { meters, logger }: ProcessTelemetry,
): WiredEngine {
  const { config } = life
  let bound: Pick<EnginePool, 'inspect'> | undefined
  let system: SystemSources | undefined
  let clusters: Catalogs | undefined
  const configured = configuredCatalogs(config, (question) => {
    if (!bound) throw new Error('catalogs are asked before the engine is there')
    return bound.inspect(question)
  })
  const sources = (): SystemSources => {
    if (!system) throw new Error('system tables are read before they are there')
    return system
  }
  const catalogs = withSystemCatalog(configured, sources, historyTables, () => clusters)
  const local = new Set(catalogs.names())
  const localCatalogs: Catalogs = {
    names: () => [...local],
    get: (name) => (local.has(name) ? catalogs.get(name) : undefined),
  }
  const engineUse = engineSettings(config, {
    folder: coordinatorFolder(config),
    launcher: life.engines,
    allowedDirectories: allowedDirectories(catalogs),
    sharers: config.workers + 1,
    translateError,
    onEvent: createEngineEvents(meters, logger),
  })
  const engine = createEnginePool(engineUse)
  const engineStarted = engine.start()
  engineStarted.catch(() => {})
  // The time limit for an answer begins only once the engine has started.
  bound = {
    inspect: async (question) => {
      await engineStarted
      return engine.inspect(question)
    },
  }
  return {
    catalogs,
    localCatalogs,
    engine,
    engineUse,
    engineStarted,
    useSystem: (sources) => void (system = sources),
    useClusters: (found) => void (clusters = found),
  }
}
