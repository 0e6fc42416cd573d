import type { Random } from '../chaos/random.ts'
import type { AttackBed } from './bed.ts'
import type { HostileTexts } from './hostile-texts.ts'
import type { Wire } from './wire.ts'

/** What a case has: numbers of its own, processes to attack, and the means to. */
export interface CaseContext {
  readonly random: Random
  readonly texts: HostileTexts
  readonly bed: AttackBed
  readonly wire: Wire
}

/** One kind of attack: what it does is a pure function of its numbers, but for ids that the server gives. */
export interface AttackFamily {
  readonly name: string
  /** How often it comes, in a thousand cases. */
  readonly weight: number
  /** Where the log is in Kafka only, or where clients must be known. */
  readonly needs?: 'kafka' | 'guard'
  /** No other case runs meanwhile: it changes what all of them would see. */
  readonly alone?: true
  /** @throws Fault when the server did what it must not */
  run(context: CaseContext): Promise<void>
}

/** The server did what it must not. */
export class Fault extends Error {
  override readonly name = 'Fault'
}

/** What was found, with all that is needed to see it again. */
export interface FoundFault {
  readonly index: number
  readonly family: string
  readonly message: string
  /** All that the case sent, in order. */
  readonly sent: readonly Buffer[]
}
