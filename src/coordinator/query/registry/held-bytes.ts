import type { QueryEventOf } from '../stream/events.ts'
import { checkPlanSize } from '../stream/planned-data.ts'
import type { LiveQuery } from '../stream/state.ts'

type Created = QueryEventOf<'QueryCreated'>['data']

/** The size of an open query without its texts: its state, its promises, its entries in lists. */
const QUERY_BYTES = 2048
/** The size of a name with its value, without their characters. */
const ENTRY_BYTES = 64

/** The memory that an open statement holds, about, in bytes: its text as typed and as shown, and its session. */
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

/** Like `statementBytes`, plus the plan, for a query that is taken over. */
export function queryBytes({ created, planned }: LiveQuery): number {
  return statementBytes(created.sql, created) + (planned ? checkPlanSize(planned, Infinity) : 0)
}

/** A string with a character beyond Latin-1 takes two bytes for each of its characters. */
function textBytes(text: string): number {
  return /[^\u0000-\u00ff]/.test(text) ? text.length * 2 : text.length
}
