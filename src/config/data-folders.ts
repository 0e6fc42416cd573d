import { join, resolve } from 'node:path'
import type { Config } from './load-config.ts'

// Where the parts of a data folder lie; all absolute.

/** The tables of `memory` catalogs. */
export function tablesFolder({ tablesDir, dataDir }: Pick<Config, 'tablesDir' | 'dataDir'>): string {
  return resolve(tablesDir ?? join(dataDir, 'tables'))
}

/** The coordinator's own: a stand-by may share the data folder of the coordinator it follows. */
export function coordinatorFolder({ dataDir, standby }: Pick<Config, 'dataDir' | 'standby'>): string {
  return join(resolve(dataDir), standby ? 'coordinator-standby' : 'coordinator')
}

/** Where engines meet the process that this folder is: by slot below it. */
export function enginesFolder(processFolder: string): string {
  return join(processFolder, 'engines')
}

export function spillFolder(processFolder: string): string {
  return join(processFolder, 'spill')
}
