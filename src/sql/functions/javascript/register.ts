import { createRequire } from 'node:module'
import { TextDecoder } from 'node:util'
import {
  BIGINT,
  BLOB,
  BOOLEAN,
  DOUBLE,
  DuckDBBlobValue,
  DuckDBListValue,
  DuckDBScalarFunction,
  INTEGER,
  LIST,
  SQLNULL,
  VARCHAR,
  type DuckDBConnection,
  type DuckDBType,
  type DuckDBValue,
} from '@duckdb/node-api'
import { setupStatements } from '../engine-setup.ts'
import { registeredName } from '../macros/javascript-macros.ts'
import { engineScripts } from './all.ts'
import { SqlFailure, type ScalarFunction, type ScalarTypeName, type ScalarValue } from './scalar-function.ts'
import { Signal } from '../../../shared/quipu-error.ts'

/** Marks an error text as ours, so that data in a failing conversion cannot forge one (runtime-errors.ts finds it). */
const MARK = String.fromCharCode(1)

const types: Readonly<Record<ScalarTypeName, DuckDBType>> = {
  VARCHAR,
  BIGINT,
  INTEGER,
  DOUBLE,
  BOOLEAN,
  BLOB,
  'VARCHAR[]': LIST(VARCHAR),
  'DOUBLE[]': LIST(DOUBLE),
}

/** The decoder of texts that `@duckdb/node-api` takes out of DuckDB: as it comes it drops U+FEFF at the beginning of a text. */
interface TextReading {
  textDecoder: TextDecoder
}

function keepByteOrderMarks(): void {
  const reading = createRequire(import.meta.url)('@duckdb/node-api/lib/vectors/dataAccessors.js') as TextReading
  if (!reading.textDecoder.ignoreBOM) reading.textDecoder = new TextDecoder('utf-8', { ignoreBOM: true })
}

/**
 * Prepares a new DuckDB instance for rendered statements: the functions written in JavaScript, then the macros. Once
 * per instance, before its configuration is locked; every connection sees them. The functions run on the thread that
 * calls this.
 */
export default async function registerAll(connection: DuckDBConnection): Promise<void> {
  keepByteOrderMarks()
  registerRaise(connection)
  for (const definition of engineScripts) connection.registerScalarFunction(wrap(definition))
  await connection.run(setupStatements())
}

function wrap(definition: ScalarFunction): DuckDBScalarFunction {
  const call = definition.call as (...args: ScalarValue[]) => ScalarValue
  return DuckDBScalarFunction.create({
    name: registeredName(definition.name),
    returnType: types[definition.returns],
    parameterTypes: definition.parameters.map((name) => types[name]),
    ...(definition.nullable === true ? { specialHandling: true } : {}),
    ...(definition.volatile === true ? { volatile: true } : {}),
    mainFunction(info, chunk, output) {
      try {
        const rows = chunk.rowCount
        for (let i = 0; i < rows; i++) {
          const args = chunk.getRowValues(i)
          const known = definition.nullable === true || !args.includes(null)
          // Every row is written: DuckDB crashes on a text that was left unset.
          output.setItem(i, known ? toDuckdb(call(...args.map(fromDuckdb)), definition.returns) : null)
        }
        output.flush()
      } catch (error) {
        info.setError(errorText(error))
      }
    },
  })
}

/** What `u_raise` was told, whole: name and message. */
class Raised extends Signal {}

function errorText(error: unknown): string {
  if (error instanceof SqlFailure || error instanceof Raised) return MARK + error.message
  return `${MARK}GENERIC_INTERNAL_ERROR: ${error instanceof RangeError ? 'The value is too large to be computed' : 'A function failed'}`
}

function fromDuckdb(value: DuckDBValue): ScalarValue {
  if (value instanceof DuckDBBlobValue) return value.bytes
  if (value instanceof DuckDBListValue) return value.items as readonly (string | number | null)[]
  return value as ScalarValue
}

function toDuckdb(value: ScalarValue, type: ScalarTypeName): DuckDBValue {
  if (value instanceof Uint8Array) return new DuckDBBlobValue(value)
  if (type.endsWith('[]') && Array.isArray(value)) return new DuckDBListValue(value as DuckDBValue[])
  if (type === 'BIGINT' && typeof value === 'number') return BigInt(value)
  return value as DuckDBValue
}

interface RawBindings {
  create_scalar_function(): unknown
  scalar_function_set_name(scalarFunction: unknown, name: string): void
  scalar_function_add_parameter(scalarFunction: unknown, type: unknown): void
  scalar_function_set_return_type(scalarFunction: unknown, type: unknown): void
  scalar_function_set_function(scalarFunction: unknown, call: () => void): void
  register_scalar_function(connection: unknown, scalarFunction: unknown): void
}

/**
 * `u_raise('NAME: message')` fails with that error. Its type is SQLNULL, which fits any branch of a CASE, and unlike
 * DuckDB's error() it may stand under TRY. Made with the raw bindings: the wrapper cannot write a SQLNULL vector.
 */
function registerRaise(connection: DuckDBConnection): void {
  const raise: ScalarFunction = {
    name: 'u_raise',
    parameters: ['VARCHAR'],
    returns: 'VARCHAR',
    call(message: string): never {
      throw new Raised(message)
    },
  }
  connection.registerScalarFunction(wrap(raise))
  const bindings = createRequire(import.meta.url)('@duckdb/node-bindings') as RawBindings
  const nothing = bindings.create_scalar_function()
  bindings.scalar_function_set_name(nothing, 'j_nothing')
  bindings.scalar_function_add_parameter(nothing, INTEGER.toLogicalType().logical_type)
  bindings.scalar_function_set_return_type(nothing, SQLNULL.toLogicalType().logical_type)
  bindings.scalar_function_set_function(nothing, () => {})
  bindings.register_scalar_function((connection as unknown as { connection: unknown }).connection, nothing)
}
