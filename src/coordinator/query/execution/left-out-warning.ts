import type { Warning } from '../../../sql/front-end.ts'

/** A warning code of Quipu's own: Trino has none for it, and codes of its plugins start higher. */
const LEFT_OUT = { code: 0x0000_ff03, name: 'CATALOG_LEFT_OUT' } as const

/** The warning for a list that lacks catalogs of a cluster. */
export function leftOutWarning(message: string): Warning {
  return { warningCode: LEFT_OUT, message }
}
