import type { QueryId } from '../shared/ids.ts'
import type { Quantity } from '../shared/quantities.ts'
import type { RightsOf } from './access-control.ts'

/** All inputs besides text and metadata that decide a statement's meaning; fixed when the client posts it. */
export interface SessionContext {
  readonly queryId: QueryId
  readonly user: string
  readonly groups: readonly string[]
  readonly source?: string
  /** In lower case. */
  readonly catalog?: string
  readonly schema?: string
  readonly path?: string
  /** The zone id as the client sent it; an unknown zone fails the statement. */
  readonly timeZone: string
  readonly language?: string
  /** The result of `now()` and related functions: QueryCreated's time, milliseconds since the epoch. */
  readonly startTimeMillis: number
  /** Session properties as text, `name` or `catalog.name`. */
  readonly properties: Readonly<Record<string, string>>
  /** The properties that the server's rules set; absent if there are none. `given`: their names. */
  readonly propertyRules?: {
    readonly given: readonly string[]
    /** The names of properties that no session can change. */
    readonly fixed: readonly string[]
    /** The values that the client sent for fixed properties. */
    readonly overridden: Readonly<Record<string, string>>
  }
  /** Upper limits of properties, whatever value is set. */
  readonly bounds?: Readonly<Record<string, Quantity>>
  /** The prepared statements that the client sent, by name. */
  readonly preparedStatements: Readonly<Record<string, string>>
  /** `NONE` if no transaction is open; absent if the client does not support transactions. */
  readonly transactionId?: string
  readonly roles: Readonly<Record<string, string>>
  readonly clientCapabilities: readonly string[]
  /** Whether the user that posted the statement may become another user; absent if no change is allowed. */
  readonly mayBecome?: (user: string) => boolean
  /** Returns the rights of any user; absent if every access is allowed. */
  readonly rightsOf?: RightsOf
  /** Called with the error in an expression of the rules. Users must not see this message. */
  readonly onRuleFault?: (message: string) => void
  /** The user that posted the statement, before any change of user. */
  readonly originalUser?: string
  /** Decides details of the wire format of types. */
  readonly headerFamily: 'Engine' | 'Trino' | 'Presto'
}
