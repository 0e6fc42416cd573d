// A module of functions like the module of the front end: a macro, a function in JavaScript, and an endless function.
import { DuckDBScalarFunction, BIGINT } from '@duckdb/node-api'

export async function register(connection) {
  const scalar = (name, value) =>
    connection.registerScalarFunction(
      DuckDBScalarFunction.create({
        name,
        returnType: BIGINT,
        parameterTypes: [BIGINT],
        mainFunction(info, chunk, out) {
          const input = chunk.getColumnVector(0)
          for (let row = 0; row < chunk.rowCount; row++) out.setItem(row, value(input.getItem(row), info))
          out.flush()
        },
      }),
    )
  scalar('plus_one', (x) => (x === null ? null : x + 1n))
  scalar('for_ever', () => {
    for (;;);
  })
}

export const vocabulary = {
  functions: new Set(['json_array', 'plus_one', 'twice', 'for_ever']),
  tableFunctions: new Set(['range']),
  scripted: new Set(['plus_one', 'for_ever']),
  macros: new Map([['twice', { statement: 'CREATE MACRO twice(x) AS x * 2', calls: [] }]]),
}
