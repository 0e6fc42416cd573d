import type { Random } from '../chaos/random.ts'
import type { AttackBed } from './bed.ts'
import type { HostileTexts } from './hostile-texts.ts'
import type { Wire } from './wire.ts'

/** The means of a case: its random numbers and texts, the attacked processes, and a wire to them. */
export interface CaseContext {
  readonly random: Random
  readonly texts: HostileTexts
  readonly bed: AttackBed
  readonly wire: Wire
}

/** One kind of attack. Its actions depend only on its random numbers and on ids from the server. */
export interface AttackFamily {
  readonly name: string
  /** The weight in the random choice of families. */
  readonly weight: number
  /** The family runs only with the log in Kafka, or only with authentication. */
  readonly needs?: 'kafka' | 'guard'
  /** No other case runs at the same time, because this one affects all others. */
  readonly alone?: true
  /** @throws Fault when the server broke a promise */
  run(context: CaseContext): Promise<void>
}

/** The server broke a promise. */
export class Fault extends Error {
  override readonly name = 'Fault'
}

/** A fault with the data to reproduce it. */
export interface FoundFault {
  readonly index: number
  readonly family: string
  readonly message: string
  /** All bytes that the case sent, in order. */
  readonly sent: readonly Buffer[]
}
