import { Signal } from '../../shared/quipu-error.ts'

/** The DuckDB types of parameters and results of functions written in JavaScript. */
export type ScalarTypeName = 'VARCHAR' | 'BIGINT' | 'INTEGER' | 'DOUBLE' | 'BOOLEAN' | 'BLOB' | 'VARCHAR[]' | 'DOUBLE[]'

/** An argument or result of a function: text, numbers (64 bits as bigint), bytes, lists. */
export type ScalarValue = string | number | bigint | boolean | Uint8Array | readonly (string | number | null)[] | null

/**
 * A scalar function of the engine written in JavaScript, for functions that SQL cannot express. A throw becomes the
 * statement's error: throw `SqlFailure` with Trino's name and message.
 */
export interface ScalarFunction {
  readonly name: string
  readonly parameters: readonly ScalarTypeName[]
  readonly returns: ScalarTypeName
  /** Whether DuckDB calls the function for NULL arguments too. Otherwise the result is NULL if an argument is NULL. */
  readonly nullable?: boolean
  /** Whether DuckDB must not fold it, nor share results between equal calls. */
  readonly volatile?: boolean
  readonly call: (...args: never[]) => ScalarValue
}

/** Argument columns of the same length. */
export interface ArgumentColumns {
  readonly rows: number
  /** The BIGINT columns; the value in a row with a NULL is undefined. */
  readonly numbers: readonly BigInt64Array<ArrayBuffer>[]
  /** The VARCHAR columns. */
  readonly texts: readonly (readonly (string | null)[])[]
  /** Whether no value of a row is NULL. */
  isKnown(row: number): boolean
}

/**
 * A function of whole columns with BIGINT results, NULL if any argument is NULL: for functions that take less time than
 * making a bigint for each row.
 */
export interface ColumnFunction {
  readonly name: string
  readonly parameters: readonly ('BIGINT' | 'VARCHAR')[]
  readonly ofColumns: (columns: ArgumentColumns) => BigInt64Array<ArrayBuffer>
}

/** An error of a function, in Trino's words. */
export class SqlFailure extends Signal {
  constructor(errorName: string, message: string) {
    super(`${errorName}: ${message}`)
  }
}

export function invalidArgument(message: string): SqlFailure {
  return new SqlFailure('INVALID_FUNCTION_ARGUMENT', message)
}

export function invalidCast(message: string): SqlFailure {
  return new SqlFailure('INVALID_CAST_ARGUMENT', message)
}
