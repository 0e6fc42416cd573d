import pg from 'pg'
import { z } from 'zod'
import { nodeCode } from '../../shared/node-error.ts'

/*
 * Reads the errors that Postgres and its client throw; no other file does.
 *
 * Separates errors that no repetition repairs from those that pass by themselves. An event with an error of the first
 * kind is set aside; for the second kind the projection waits.
 */

/** SQLSTATE classes that mean that a database will never take these rows. */
const NEVER_TAKEN: Readonly<Record<string, string>> = {
  '21': 'cardinality: two rows of one statement have the same key',
  '22': 'data: a value does not fit its type, its range or its encoding',
  '23': 'integrity: a row breaks a constraint',
  '54': 'program limit: an index row, a nesting, a text or an object beyond what the server can ever hold',
}

/*
 * All other errors are tried again. These look similar but pass: 53100 disk full, 53200 out of memory, 53300 too many
 * connections, 55 locks, 57 an operator or a time limit, 40 a rollback, 08 connections, 25 a transaction that was cut,
 * XX a fault of the server, 42 tables that another session is changing.
 */

/** Whether the event itself, and not a passing condition, prevents its projection. */
export function isNeverTaken(error: unknown): boolean {
  const state = sqlStateOf(error)
  if (state !== undefined) return Object.hasOwn(NEVER_TAKEN, state.slice(0, 2))
  // The rows cannot even be built: too deep, too long, of the wrong shape. Connections and files fail with other
  // classes.
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

/** SQLSTATEs that the log and the read models check. */
const sqlStates = {
  uniqueViolation: '23505',
  /** A row without a partition, or a row that a new partition would take over from another one. */
  checkViolation: '23514',
  lockNotAvailable: '55P03',
  wrongObjectType: '42809',
  /** A statement exceeded its time limit. */
  queryCanceled: '57014',
} as const

export function hasSqlState(error: unknown, state: keyof typeof sqlStates): boolean {
  return sqlStateOf(error) === sqlStates[state]
}

/**
 * Whether the connection must be replaced after such an error: after any error except one that ended only the
 * statement.
 */
export function breaksConnection(error: unknown): boolean {
  const state = sqlStateOf(error)
  return state === undefined || /^(08|57|58|XX|25)/.test(state)
}

const COUNTED = ['08', '23', '40', '53', '57']

/** The SQLSTATE class of an error, for counters; errors that never reached the server count as 08. */
export function countedClass(error: unknown): string {
  const state = sqlStateOf(error)
  if (state !== undefined) return COUNTED.find((one) => state.startsWith(one)) ?? 'other'
  return nodeCode(error) === undefined ? 'other' : '08'
}
