import type { LimitedPerson } from '../../shared/limit-owner.ts'
import type { QueryEventOf } from './events.ts'
import { checkPlanSize } from './planned-data.ts'
import type { LiveQuery } from './state.ts'

type Created = QueryEventOf<'QueryCreated'>['data']

/** An open query without its texts: its state, its promises, its place in lists. */
const QUERY_BYTES = 2048
/** A name with its value, beside their characters. */
const ENTRY_BYTES = 64

/** Who posted a statement, as limits look at them. */
export function personOf({ session }: Pick<Created, 'session'>): LimitedPerson {
  return { user: session.user, remoteAddress: session.remoteUserAddress }
}

/** What a statement holds of memory for as long as it is open, about: its text as typed and as it is shown, its session. */
export function statementBytes(sql: string, created: Created): number {
  const { session } = created
  const entries =
    Object.keys(session.properties).length +
    Object.keys(session.preparedStatements).length +
    Object.keys(session.roles).length +
    session.clientTags.length +
    session.capabilities.length
  return (
    QUERY_BYTES +
    textBytes(sql) +
    (created.sql === sql ? 0 : textBytes(created.sql)) +
    textBytes(JSON.stringify(session)) +
    entries * ENTRY_BYTES
  )
}

/** As `statementBytes`, with the plan, of a query that is taken over. */
export function queryBytes({ created, planned }: LiveQuery): number {
  return statementBytes(created.sql, created) + (planned ? checkPlanSize(planned, Infinity) : 0)
}

/** A string with a character beyond Latin-1 takes two bytes for each. */
function textBytes(text: string): number {
  return /[^\u0000-\u00ff]/.test(text) ? text.length * 2 : text.length
}
