import { Signal } from '../../shared/quipu-error.ts'

/** The DuckDB types that functions written in JavaScript take and give. */
export type ScalarTypeName = 'VARCHAR' | 'BIGINT' | 'INTEGER' | 'DOUBLE' | 'BOOLEAN' | 'BLOB' | 'VARCHAR[]' | 'DOUBLE[]'

/** What a function gets and gives: text, numbers (64 bits as bigint), bytes, lists. */
export type ScalarValue = string | number | bigint | boolean | Uint8Array | readonly (string | number | null)[] | null

/**
 * A scalar function of the engine written in JavaScript, for what SQL cannot say. A throw becomes the statement's error:
 * throw `SqlFailure` with Trino's name and message.
 */
export interface ScalarFunction {
  readonly name: string
  readonly parameters: readonly ScalarTypeName[]
  readonly returns: ScalarTypeName
  /** Called for NULL arguments too; otherwise NULL in, NULL out. */
  readonly nullable?: boolean
  /** Not folded, not shared between equal calls. */
  readonly volatile?: boolean
  readonly call: (...args: never[]) => ScalarValue
}

/** Columns of as many rows. */
export interface ArgumentColumns {
  readonly rows: number
  /** Those that are BIGINT; what stands in a row with a NULL is anything. */
  readonly numbers: readonly BigInt64Array<ArrayBuffer>[]
  /** Those that are VARCHAR. */
  readonly texts: readonly (readonly (string | null)[])[]
  /** Whether none of a row's values is NULL. */
  isKnown(row: number): boolean
}

/** A function of whole columns to BIGINTs, NULL in, NULL out: for what takes less time than making a bigint a row. */
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
