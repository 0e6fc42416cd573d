import type { QuerySession } from '../../coordinator/query/stream/events.ts'
import type { Authorize } from '../../security/authorization.ts'

interface RecordedSessionDeps {
  /** The groups of a user, by the groups file in force. */
  readonly groupsOf: (user: string) => readonly string[]
  /** Whether credentials may name groups that the file does not have. */
  readonly credentialsHaveGroups: boolean
  readonly rights: Authorize
}

/**
 * Why a statement may not run again with a recorded session, without a new log-in of its user. Undefined: it may. Rules
 * that are in force when the statement runs decide everything else.
 */
export function notAsBefore(
  { groupsOf, credentialsHaveGroups, rights }: RecordedSessionDeps,
  { user, originalUser, principal, groups }: QuerySession,
): string | undefined {
  const now = groupsOf(user)
  const isSame =
    now.every((group) => groups.includes(group)) &&
    (credentialsHaveGroups || groups.every((group) => now.includes(group)))
  if (!isSame) return `The groups of user ${user} have changed since`
  if (originalUser === undefined || originalUser === user) return undefined
  const poster = { user: originalUser, groups: groupsOf(originalUser), ...(principal !== undefined && { principal }) }
  if (rights(poster, { action: 'impersonate', user })) return undefined
  return `User ${originalUser} may not act as user ${user} any more`
}
