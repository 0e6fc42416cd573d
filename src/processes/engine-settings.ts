import { availableParallelism, totalmem } from 'node:os'
import { enginesFolder, spillFolder } from '../config/data-folders.ts'
import type { Config } from '../config/load-config.ts'
import type { EngineEvent, EngineSettings } from '../execution/engine/engine.ts'
import type { EngineLauncher } from '../execution/engine/launched-program.ts'
import { ENGINE_MODULE } from '../duckdb/engine-module-url.ts'

export interface EngineUse {
  /** The folder of the process: `<data>/coordinator`, `<data>/worker-<n>`. */
  readonly folder: string
  readonly allowedDirectories: readonly string[]
  /** How many processes share the memory for engines. */
  readonly sharers: number
  readonly translateError: (text: string) => Error
  /** Starts engines as users of their own. */
  readonly launcher: EngineLauncher | undefined
  readonly onEvent?: (event: EngineEvent) => void
  /** Connections of the engine for small statements. @default 16 */
  readonly sharedConnections?: number
}

/** The limits of an engine: the configured part of the container's memory, shared by the processes that run engines. */
export function engineSettings(config: Config, use: EngineUse): EngineSettings {
  const { timeouts, limits } = config
  const machine = Math.min(process.constrainedMemory() || Infinity, totalmem())
  const share = Math.floor((machine * limits.engineMemoryPercent) / 100 / Math.max(1, use.sharers))
  const cores = availableParallelism()
  return {
    folder: enginesFolder(use.folder),
    spillFolder: spillFolder(use.folder),
    allowedDirectories: use.allowedDirectories,
    // Besides the shared engine, as many dedicated engines as cores may run at once.
    memoryLimitBytes: Math.max(256 * 1024 * 1024, Math.floor(share / (cores + 1))),
    maxSpillBytes: limits.pageStoreBytes,
    cores,
    sharedConnections: use.sharedConnections ?? 16,
    dedicatedConnections: 2,
    functionsModule: ENGINE_MODULE,
    ...(use.launcher && { launcher: use.launcher }),
    prepareDeadlineMs: timeouts.prepareMs,
    interruptToKillMs: timeouts.interruptMs,
    beatMs: timeouts.engineBeatMs,
    deadAfterMs: timeouts.engineDeadMs,
    spareAfterMs: timeouts.spareEngineMs,
    translateError: use.translateError,
    ...(use.onEvent ? { onEvent: use.onEvent } : {}),
  }
}
