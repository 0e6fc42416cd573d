import type { Connection } from '@duckdb/node-bindings'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ScalarTypeName } from '../../../src/duckdb/scripts/scalar-function.ts'
import { bindings } from '../../../src/shared/duckdb.ts'
import { readColumn, scalarTypes, writeColumn } from '../../../src/duckdb/scripts/vectors.ts'
import { literal, toText } from '../../../src/duckdb/text/sql.ts'
import { openDuckDB, type InProcessDuckDB } from '../../support/duckdb-in-process.ts'

/** SQL that makes a value of each type from a text `x` and a number `i`, and sometimes NULL. */
const VALUES: Readonly<Record<ScalarTypeName, string>> = {
  VARCHAR: 'x',
  BIGINT: `CASE WHEN i % 7 > 0 THEN CAST(hash(x) >> 1 AS BIGINT) * (i % 3 - 1) END`,
  INTEGER: `CASE WHEN i % 7 > 0 THEN CAST(CAST(hash(x) % 4294967296 AS BIGINT) - 2147483648 AS INTEGER) END`,
  DOUBLE: `CASE WHEN i % 7 > 0 THEN hash(x) / 3e10 * (i % 3 - 1) END`,
  BOOLEAN: `CASE WHEN i % 7 > 0 THEN hash(x) % 2 = 0 END`,
  BLOB: `encode(x)`,
  'VARCHAR[]': `CASE WHEN i % 7 > 0 THEN list_slice([x, NULL, 'a', x || 'and more of it', ''], 1, i % 6) END`,
  'DOUBLE[]': `CASE WHEN i % 7 > 0 THEN list_slice([1e300, NULL, i, -0.5], 1, i % 5) END`,
}

let db: InProcessDuckDB
beforeAll(async () => {
  db = await openDuckDB()
  const { connection } = db.connection as unknown as { connection: Connection }
  for (const [name, type] of Object.entries(scalarTypes)) {
    const same = bindings.create_scalar_function()
    bindings.scalar_function_set_name(same, `same ${name}`)
    bindings.scalar_function_add_parameter(same, type.toLogicalType().logical_type)
    bindings.scalar_function_set_return_type(same, type.toLogicalType().logical_type)
    bindings.scalar_function_set_special_handling(same)
    bindings.scalar_function_set_function(same, (_info, input, output) => {
      const rows = bindings.data_chunk_get_size(input)
      const read = readColumn(bindings.data_chunk_get_vector(input, 0), name as ScalarTypeName, rows)
      writeColumn(output, name as ScalarTypeName, read)
    })
    bindings.register_scalar_function(connection, same)
  }
})
afterAll(() => db.close())

/** Returns the number of rows that change on their way through JavaScript. */
async function changed(type: ScalarTypeName, from: string): Promise<unknown> {
  const sql = `SELECT count(*) FROM (SELECT ${VALUES[type]} AS v FROM ${from}) WHERE "same ${type}"(v) IS DISTINCT FROM v`
  return (await db.connection.runAndReadAll(sql)).getRowsJson()[0]![0]
}

const types = Object.keys(scalarTypes) as ScalarTypeName[]

describe.each(types)('A column of type %s that passes through JavaScript', (type) => {
  it('is unchanged for random texts', async () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 40 }),
      fc.string({ minLength: 10, maxLength: 15 }),
      fc.constant(null),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 100 }), async (texts) => {
        const rows = texts.map((each, i) => {
          // A statement cannot contain lone surrogates, and a literal cannot contain NUL.
          const safe = each?.replaceAll(/\p{Surrogate}/gu, '?').replaceAll('\0', '\u0001')
          return `(${i}, ${safe === undefined ? 'NULL' : toText(literal(safe))})`
        })
        expect(await changed(type, `(VALUES ${rows.join(', ')}) t(i, x)`)).toBe('0')
      }),
      { numRuns: 15 },
    )
  })

  it('is unchanged if it is filtered, sorted, constant or joined', async () => {
    const texts = `SELECT i, CASE WHEN i % 11 > 0 THEN repeat(CASE i % 5 WHEN 0 THEN 'ß😀' ELSE chr(CAST(i % 128 AS INTEGER)) END, CAST(i % 37 AS INTEGER)) END AS x FROM range(10000) r(i)`
    const long = `SELECT i, repeat('ab' || chr(CAST(i % 256 AS INTEGER)), CAST(i * 1000 AS INTEGER)) AS x FROM range(200) r(i)`
    for (const from of [
      `(${texts})`,
      `(${texts}) WHERE i % 3 = 1`,
      `(${texts} ORDER BY hash(i))`,
      `(${long} ORDER BY hash(i))`,
      `range(5000) r(i), (SELECT 'one for all of them' AS x)`,
      `(SELECT o.i, p.x FROM range(6000) o(i) JOIN (${texts}) p ON p.i = o.i % 50 * 31)`,
    ]) {
      expect(await changed(type, from), from).toBe('0')
    }
  })
})
