import type { Asker } from '../../src/connectors/spi/connector.ts'
import { knownOwner } from '../../src/shared/limit-owner.ts'

/** A user who reads system tables, known by name. */
export function askerNamed(user: string, ...groups: string[]): Asker {
  return { user, groups, owner: knownOwner(user) }
}
