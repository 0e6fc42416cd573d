import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../config/load-config.ts'
import { settingList } from '../../config/setting-list.ts'
import type { Catalogs } from '../../connectors/spi/catalogs.ts'
import { recordedVersion, type FileVersion } from '../../coordinator/system/file-record.ts'
import type { SystemEvent } from '../../coordinator/system/events.ts'
import { version } from '../../shared/version.ts'
import { shownAddress } from '../shown-address.ts'

type ConfigurationLoaded = Extract<SystemEvent, { type: 'ConfigurationLoaded' }>['data']

export interface LoadedDeps {
  readonly config: Config
  readonly catalogs: Catalogs
  /** The access files in force. */
  readonly files: readonly FileVersion[]
}

/**
 * The configuration of this coordinator, without its secrets.
 * @param digestKey keys the digests: a reader of the log cannot use them to test guesses of passwords in catalog files
 */
export function configurationLoaded({ config, catalogs, files }: LoadedDeps, digestKey: Buffer): ConfigurationLoaded {
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

/** Removes passwords from addresses. */
function shownValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shownValue)
  return typeof value === 'string' ? shownAddress(value) : value
}

function valueAt(config: Config, path: readonly string[]): unknown {
  let value: unknown = config
  for (const key of path) value = (value as Readonly<Record<string, unknown>>)[key]
  return value
}

/** Reads a catalog's file. The catalog `system` has none. */
function readCatalogFile(path: string): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch {
    return undefined
  }
}
