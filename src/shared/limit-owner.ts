import type { SlotOwner } from './fair-queue.ts'
import { networkOf } from './network-of.ts'

/** Somebody who does something, as far as limits look at them. */
export interface LimitedPerson {
  /** As whom they act. */
  readonly user: string
  readonly remoteAddress?: string | undefined
}

/** Whom limits count something to. */
export type LimitOwnerOf = (person: LimitedPerson) => SlotOwner

/**
 * The one rule of all limits by person. With authentication a user is one owner wherever they come from, so that 500 people behind
 * one proxy are 500; a user whom somebody may act as by the rules counts as that user. Without authentication names are claims: an address is one
 * owner, whatever names come from it.
 */
export function limitOwners(authenticated: boolean): LimitOwnerOf {
  return authenticated ? ({ user }) => knownOwner(user) : ({ user, remoteAddress }) => unknownOwner(remoteAddress, user)
}

/** A user who was verified. No address is written so. */
export function knownOwner(user: string): SlotOwner {
  return { address: `user ${user}`, user, known: true }
}

/** @param user as claimed, by which those of one address take turns */
export function unknownOwner(remoteAddress: string | undefined, user = ''): SlotOwner {
  return { address: networkOf(remoteAddress), user }
}
