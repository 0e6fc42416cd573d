import type { Connector } from './connector.ts'

/** The configured catalogs of a process; names are lower case. */
export interface Catalogs {
  names(): readonly string[]
  get(catalog: string): Connector | undefined
}
