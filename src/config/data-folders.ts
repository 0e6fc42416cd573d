import { join, resolve } from 'node:path'
import type { Config } from './load-config.ts'

// The folders within a data folder; all absolute.

/** The folder of the tables of `memory` catalogs. */
export function tablesFolder({ tablesDir, dataDir }: Pick<Config, 'tablesDir' | 'dataDir'>): string {
  return resolve(tablesDir ?? join(dataDir, 'tables'))
}

/** The coordinator's own folder. A stand-by may share the data folder of the coordinator that it follows. */
export function coordinatorFolder({ dataDir, standby }: Pick<Config, 'dataDir' | 'standby'>): string {
  return join(resolve(dataDir), standby ? 'coordinator-standby' : 'coordinator')
}

/** The folder through which engines and the process of this folder communicate, with a subfolder for each slot. */
export function enginesFolder(processFolder: string): string {
  return join(processFolder, 'engines')
}

export function spillFolder(processFolder: string): string {
  return join(processFolder, 'spill')
}
