import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../config/load-config.ts'
import { settingList } from '../../config/setting-list.ts'
import type { Catalogs } from '../../connectors/spi/catalogs.ts'
import { recordedVersion, type FileVersion } from '../../coordinator/system/file-record.ts'
import type { SystemEvent } from '../../coordinator/system/events.ts'
import { version } from '../../shared/version.ts'
import { shownAddress } from './shown-address.ts'

type ConfigurationLoaded = Extract<SystemEvent, { type: 'ConfigurationLoaded' }>['data']

export interface LoadedParts {
  readonly config: Config
  readonly catalogs: Catalogs
  /** Files in force that say who may do what. */
  readonly files: readonly FileVersion[]
}

/**
 * What this coordinator runs with, without its secrets.
 * @param digestKey keys the digests: who reads the log cannot try passwords of catalog files against them
 */
export function configurationLoaded({ config, catalogs, files }: LoadedParts, digestKey: Buffer): ConfigurationLoaded {
  const settings: Record<string, unknown> = {}
  for (const { path, secret } of settingList) {
    const value = valueAt(config, path)
    if (value !== undefined) settings[path.join('.')] = secret ? '(set)' : shownValue(value)
  }
  return {
    version,
    versions: { node: process.versions.node },
    settings,
    catalogs: catalogs.names().map((name) => {
      const file = readCatalogFile(join(config.catalogDir, `${name}.json`))
      return {
        name,
        connector: catalogs.get(name)!.connectorName,
        ...(file && { digest: createHmac('sha256', digestKey).update(file).digest('hex') }),
      }
    }),
    ...(files.length > 0 && { files: files.map(recordedVersion) }),
  }
}

/** Addresses may hold passwords. */
function shownValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shownValue)
  return typeof value === 'string' ? shownAddress(value) : value
}

function valueAt(config: Config, path: readonly string[]): unknown {
  let value: unknown = config
  for (const key of path) value = (value as Readonly<Record<string, unknown>>)[key]
  return value
}

/** The catalog `system` has none. */
function readCatalogFile(path: string): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch {
    return undefined
  }
}
