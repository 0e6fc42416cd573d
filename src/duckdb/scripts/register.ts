import { createRequire } from 'node:module'
import { TextDecoder } from 'node:util'
import type { DuckDBConnection, DuckDBType } from '@duckdb/node-api'
import type { Connection, LogicalType, ScalarFunctionMainFunction } from '@duckdb/node-bindings'
import { setupStatements } from '../engine-setup.ts'
import { registeredName } from '../macros/javascript-macros.ts'
import { engineScripts } from './all.ts'
import { type ColumnFunction, SqlFailure, type ScalarFunction, type ScalarValue } from './scalar-function.ts'
import { readColumn, readColumns, scalarTypes, writeBigints, writeColumn } from './vectors.ts'
import { bindings, SQLNULL } from '../../shared/duckdb.ts'
import { Signal } from '../../shared/quipu-error.ts'

/**
 * Marks an error text as one of Quipu, so that data in a failing conversion cannot forge one (runtime-errors.ts looks
 * for it).
 */
const MARK = String.fromCharCode(1)

/** The decoder of texts in `@duckdb/node-api`; by default it drops U+FEFF at the beginning of a text. */
interface TextReading {
  textDecoder: TextDecoder
}

function keepByteOrderMarks(): void {
  const reading = createRequire(import.meta.url)('@duckdb/node-api/lib/vectors/dataAccessors.js') as TextReading
  if (!reading.textDecoder.ignoreBOM) reading.textDecoder = new TextDecoder('utf-8', { ignoreBOM: true })
}

/**
 * Registers the functions written in JavaScript with a new DuckDB instance, before its configuration is locked. Every
 * connection can call them. They run on the thread that calls this function.
 */
export async function registerScripts(connection: DuckDBConnection): Promise<void> {
  keepByteOrderMarks()
  registerRaise(connection)
  for (const definition of engineScripts) {
    if ('ofColumns' in definition) registerOfColumns(connection, definition)
    else registerScript(connection, definition)
  }
}

/** Prepares a new DuckDB instance for any rendered statement: also with the macros, which engines define one by one. */
export default async function registerAll(connection: DuckDBConnection): Promise<void> {
  await registerScripts(connection)
  await connection.run(setupStatements())
}

function register(
  connection: DuckDBConnection,
  name: string,
  definition: Shape,
  run: ScalarFunctionMainFunction,
): void {
  const made = bindings.create_scalar_function()
  bindings.scalar_function_set_name(made, name)
  for (const type of definition.parameters) bindings.scalar_function_add_parameter(made, logical(scalarTypes[type]))
  bindings.scalar_function_set_return_type(made, logical(definition.returns))
  if (definition.nullable === true) bindings.scalar_function_set_special_handling(made)
  if (definition.volatile === true) bindings.scalar_function_set_volatile(made)
  bindings.scalar_function_set_function(made, run)
  bindings.register_scalar_function((connection as unknown as { connection: Connection }).connection, made)
}

/** The signature and properties of a function that the engine must know. */
type Shape = Pick<ScalarFunction, 'parameters' | 'nullable' | 'volatile'> & { readonly returns: DuckDBType }

function logical(type: DuckDBType): LogicalType {
  return type.toLogicalType().logical_type
}

function registerScript(connection: DuckDBConnection, definition: ScalarFunction): void {
  register(
    connection,
    registeredName(definition.name),
    { ...definition, returns: scalarTypes[definition.returns] },
    (info, input, output) => {
      try {
        const rows = bindings.data_chunk_get_size(input)
        const columns = definition.parameters.map((type, i) =>
          readColumn(bindings.data_chunk_get_vector(input, i), type, rows),
        )
        writeColumn(output, definition.returns, answers(definition, columns, rows))
      } catch (error) {
        bindings.scalar_function_set_error(info, errorText(error))
      }
    },
  )
}

function registerOfColumns(connection: DuckDBConnection, { name, parameters, ofColumns }: ColumnFunction): void {
  register(connection, registeredName(name), { parameters, returns: scalarTypes.BIGINT }, (info, input, output) => {
    try {
      const rows = bindings.data_chunk_get_size(input)
      const vectors = parameters.map((_, i) => bindings.data_chunk_get_vector(input, i))
      const columns = readColumns(vectors, parameters, rows)
      writeBigints(output, ofColumns(columns), columns.bits)
    } catch (error) {
      bindings.scalar_function_set_error(info, errorText(error))
    }
  })
}

/** The function's results for all rows. */
function answers(
  { call: typed, nullable = false }: ScalarFunction,
  columns: readonly (readonly ScalarValue[])[],
  rows: number,
): ScalarValue[] {
  const call = typed as (...args: ScalarValue[]) => ScalarValue
  const found: ScalarValue[] = []
  const [first = [], second = [], third] = columns
  // A group of a pattern that took no part in a match is undefined, although its type does not say so.
  for (let row = 0; row < rows; row++) {
    if (third !== undefined) {
      if (!nullable && columns.some((column) => column[row] === null)) found.push(null)
      else found.push(call(...columns.map((column) => column[row]!)) ?? null)
      continue
    }
    const [a, b] = [first[row]!, second[row]!]
    // The value of a missing argument is undefined.
    if (!nullable && (a === null || b === null)) found.push(null)
    else found.push(call(a, b) ?? null)
  }
  return found
}

/** The error of `u_raise`; its message is the complete text: name and message. */
class Raised extends Signal {}

function errorText(error: unknown): string {
  if (error instanceof SqlFailure || error instanceof Raised) return MARK + error.message
  // JavaScript throws RangeError for a text or an array that is too large.
  if (error instanceof RangeError)
    return `${MARK}EXCEEDED_FUNCTION_MEMORY_LIMIT: The value of a function is too large to be computed`
  return `${MARK}GENERIC_INTERNAL_ERROR: A function failed`
}

/**
 * Registers `u_raise('NAME: message')`, which fails with that error. Its type is SQLNULL, which fits any branch of a
 * CASE. Unlike DuckDB's error(), it can be used under TRY.
 */
function registerRaise(connection: DuckDBConnection): void {
  registerScript(connection, {
    name: 'u_raise',
    parameters: ['VARCHAR'],
    returns: 'VARCHAR',
    call(message: string): never {
      throw new Raised(message)
    },
  })
  register(connection, 'j_nothing', { parameters: ['INTEGER'], returns: SQLNULL }, () => {})
}
