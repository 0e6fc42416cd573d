import type { SlotOwner } from './fair-queue.ts'
import { networkOf } from './network-of.ts'

/** A user or client as limits see it. */
export interface LimitedPerson {
  /** The user that they act as. */
  readonly user: string
  readonly remoteAddress?: string | undefined
}

/** Finds the owner whose limits a person's actions count against. */
export type LimitOwnerOf = (person: LimitedPerson) => SlotOwner

/**
 * The rule of all limits by owner. With authentication a user is one owner wherever they connect from, so 500 people
 * behind one proxy are 500 owners. A user who acts as another user, as the rules allow, counts as that other user.
 * Without authentication names are only claims: an address is one owner, whatever names come from it.
 */
export function limitOwners(authenticated: boolean): LimitOwnerOf {
  return authenticated ? ({ user }) => knownOwner(user) : ({ user, remoteAddress }) => unknownOwner(remoteAddress, user)
}

/** The owner for a verified user. No real address has this form. */
export function knownOwner(user: string): SlotOwner {
  return { address: `user ${user}`, user, known: true }
}

/** @param user the claimed name; names within one address go in turn */
export function unknownOwner(remoteAddress: string | undefined, user = ''): SlotOwner {
  return { address: networkOf(remoteAddress), user }
}
