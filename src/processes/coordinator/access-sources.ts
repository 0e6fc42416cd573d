import { watchFiles, type WatchedFiles } from '../../security/watched-files.ts'
import { ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { Meters } from '../../telemetry/meters.ts'

/** What is told of a file, or of a server of keys. */
export type SourceName =
  'rules' | 'resource_groups' | 'passwords' | 'groups' | 'user_mapping' | 'token_key' | 'token_keys'

export interface AccessTelemetry {
  readonly logger: Logger
  readonly meters: () => Meters
}

/** Files, and servers of keys, that say who may come in and do what; what becomes of them is told by log and figures. */
export interface AccessSources {
  /**
   * Reads a file, now and whenever it changes.
   * @param setting that names it, where the end should say so
   * @throws ExitError 64 when it cannot be taken at the start: there is nothing before it that could stay in force
   */
  follow<T>(name: SourceName, path: string, read: (text: string) => T, setting?: string): WatchedFiles<T>
  taken(name: SourceName, path: string): void
  broken(name: SourceName, path: string, error: Error): void
  /** Looks at no file any more. */
  stop(): void
}

/** @param telemetry undefined before there is any: nothing is told until then */
export function createAccessSources(telemetry: () => AccessTelemetry | undefined): AccessSources {
  const followed: Pick<WatchedFiles<unknown>, 'stop'>[] = []

  function taken(name: SourceName, path: string): void {
    telemetry()?.meters().set('filesBroken', { file: name }, 0)
    telemetry()?.logger.info('file.reloaded', { file: name, path }, 'What changed is in force')
  }

  function broken(name: SourceName, path: string, error: Error): void {
    telemetry()?.meters().set('filesBroken', { file: name }, 1)
    const fields = { file: name, path, reason: error.message }
    telemetry()?.logger.error('file.broken', fields, 'It cannot be taken: what was there before stays in force')
  }

  return {
    taken,
    broken,
    follow(name, path, read, setting) {
      const file = orEnd(setting === undefined ? path : `${setting}: ${path}`, () =>
        watchFiles([path], ([text]) => read(text), {
          onReloaded: () => taken(name, path),
          onBroken: (error) => broken(name, path, error),
        }),
      )
      followed.push(file)
      return file
    },
    stop() {
      for (const file of followed) file.stop()
    },
  }
}

/** @throws ExitError 64 with one line when something of the configuration cannot be made */
export function orEnd<T>(what: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw new ExitError(exitCodes.configuration, `${what}: ${(error as Error).message}`)
  }
}
