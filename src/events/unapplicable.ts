import pg from 'pg'

/*
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
    (error instanceof Error && error.name === 'ZodError')
  )
}

/** SQLSTATE of a database error. */
export function sqlStateOf(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined
}
