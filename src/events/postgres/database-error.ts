import pg from 'pg'
import { z } from 'zod'
import { nodeCode } from '../../shared/node-error.ts'

/*
 * What Postgres and its client throw, read here alone.
 *
 * What no repetition mends, against what passes by itself: an event that meets the first is set aside, for the second the
 * projection waits.
 */

/** SQLSTATE classes by which a database says that it will never take these rows. */
const NEVER_TAKEN: Readonly<Record<string, string>> = {
  '21': 'cardinality: two rows of one statement have one key',
  '22': 'data: a value does not fit its type, its range or its encoding',
  '23': 'integrity: a row breaks a constraint',
  '54': 'program limit: an index row, a nesting, a text or an object beyond what the server can ever hold',
}

/*
 * All others are tried again. Those that look alike and pass: 53100 disk full, 53200 out of memory, 53300 too many
 * connections, 55 locks, 57 an operator or a time limit, 40 a rollback, 08 connections, 25 a transaction that was cut, XX
 * a server at fault, 42 tables that somebody is changing.
 */

/** Whether the event itself, and nothing that passes, keeps it from being applied. */
export function isNeverTaken(error: unknown): boolean {
  const state = sqlStateOf(error)
  if (state !== undefined) return Object.hasOwn(NEVER_TAKEN, state.slice(0, 2))
  // Rows that cannot even be made: too deep, too long, of the wrong shape. Connections and files fail with other classes.
  return (
    error instanceof RangeError ||
    error instanceof TypeError ||
    error instanceof SyntaxError ||
    error instanceof z.ZodError
  )
}

/** SQLSTATE of a database error. */
export function sqlStateOf(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined
}

/** What the log and the read models look for by its code. */
const sqlStates = {
  uniqueViolation: '23505',
  /** A row without a partition, or one that a new partition would take from the others. */
  checkViolation: '23514',
  lockNotAvailable: '55P03',
  wrongObjectType: '42809',
  /** Of a statement that took longer than it may. */
  queryCanceled: '57014',
} as const

export function hasSqlState(error: unknown, state: keyof typeof sqlStates): boolean {
  return sqlStateOf(error) === sqlStates[state]
}

/** Whether after such an error the connection cannot be trusted: anything but an answer that ended the statement only. */
export function breaksConnection(error: unknown): boolean {
  const state = sqlStateOf(error)
  return state === undefined || /^(08|57|58|XX|25)/.test(state)
}

const COUNTED = ['08', '23', '40', '53', '57']

/** The class of its SQLSTATE, as it is counted; 08 is also what never reached the server. */
export function countedClass(error: unknown): string {
  const state = sqlStateOf(error)
  if (state !== undefined) return COUNTED.find((one) => state.startsWith(one)) ?? 'other'
  return nodeCode(error) === undefined ? 'other' : '08'
}
