import type { QueryId } from '../shared/ids.ts'
import type { Quantity } from '../shared/quantities.ts'
import type { RightsOf } from './access-control.ts'

/** All that a statement's meaning depends on besides its text and the metadata; fixed by the POST. */
export interface SessionContext {
  readonly queryId: QueryId
  readonly user: string
  readonly groups: readonly string[]
  readonly source?: string
  /** Lower case. */
  readonly catalog?: string
  readonly schema?: string
  readonly path?: string
  /** Zone id as the client gave it; an unknown one fails the statement. */
  readonly timeZone: string
  readonly language?: string
  /** What `now()` and its family give: QueryCreated's time, milliseconds since the epoch. */
  readonly startTimeMillis: number
  /** Session properties as text, `name` or `catalog.name`. */
  readonly properties: Readonly<Record<string, string>>
  /** What of the properties the server's rules have set; absent where there are none. */
  readonly propertyRules?: {
    readonly given: readonly string[]
    /** No session sets these otherwise. */
    readonly fixed: readonly string[]
    /** What the client sent for those. */
    readonly overridden: Readonly<Record<string, string>>
  }
  /** What a property can make no larger, whatever it is set to. */
  readonly bounds?: Readonly<Record<string, Quantity>>
  /** Prepared statements the client sent, by name. */
  readonly preparedStatements: Readonly<Record<string, string>>
  /** Absent: the client cannot do transactions. `NONE`: none is open. */
  readonly transactionId?: string
  readonly roles: Readonly<Record<string, string>>
  readonly clientCapabilities: readonly string[]
  /** May who posted the statement become another user? Absent: nobody may. */
  readonly mayBecome?: (user: string) => boolean
  /** What anybody may do; absent: whatever he likes. */
  readonly rightsOf?: RightsOf
  /** Is told what is wrong with an expression of the rules: nobody else may be. */
  readonly onRuleFault?: (message: string) => void
  /** Who posted the statement, whoever he is now. */
  readonly originalUser?: string
  /** Decides wire details of types. */
  readonly headerFamily: 'Engine' | 'Trino' | 'Presto'
}
