import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { engineScripts } from '../../../src/duckdb/scripts/all.ts'
import type { ScalarFunction, ScalarTypeName, ScalarValue } from '../../../src/duckdb/scripts/scalar-function.ts'
import { openDuckDB, type InProcessDuckDB } from '../../support/duckdb-in-process.ts'

/** Texts that some decoders change. */
const TEXTS = ['\ufeff', '\ufeffabc', '\ufeff\ufeffa\ufeff', 'a\u2028\ufffe', '\ufffd😀', '']

/** A value for each type that is not a text, in SQL and in JavaScript. */
const OTHERS: Readonly<Record<Exclude<ScalarTypeName, 'VARCHAR' | 'VARCHAR[]'>, readonly [string, ScalarValue]>> = {
  BIGINT: ['CAST(1 AS BIGINT)', 1n],
  INTEGER: ['CAST(1 AS INTEGER)', 1],
  DOUBLE: ['CAST(1 AS DOUBLE)', 1],
  BOOLEAN: ['true', true],
  BLOB: [`unhex('EFBBBF61')`, new Uint8Array([0xef, 0xbb, 0xbf, 0x61])],
  'DOUBLE[]': ['[CAST(1 AS DOUBLE)]', [1]],
}

const hex = (text: string): string => Buffer.from(text, 'utf8').toString('hex').toUpperCase()
const sqlText = (text: string): string => `decode(unhex('${hex(text)}'))`

function argument(type: ScalarTypeName, text: string): readonly [string, ScalarValue] {
  if (type === 'VARCHAR') return [sqlText(text), text]
  if (type === 'VARCHAR[]') return [`[${sqlText(text)}]`, [text]]
  return OTHERS[type]
}

/** Calls the function directly: returns a text or bytes as hexadecimal digits, and other values as text. */
function direct({ call }: ScalarFunction, values: readonly ScalarValue[]): string {
  try {
    return shown((call as (...args: readonly ScalarValue[]) => ScalarValue)(...values))
  } catch {
    return 'failed'
  }
}

function shown(value: ScalarValue): string {
  if (typeof value === 'string') return hex(value)
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex').toUpperCase()
  if (Array.isArray(value)) return value.map((item) => shown(item as ScalarValue)).join(' ')
  return String(value ?? null)
}

const functions = engineScripts.filter(
  (each): each is ScalarFunction =>
    'call' in each && each.volatile !== true && each.parameters.some((type) => type.startsWith('VARCHAR')),
)

describe('A text argument of a JavaScript function', () => {
  let duckdb: InProcessDuckDB
  beforeAll(async () => {
    duckdb = await openDuckDB()
  })
  afterAll(() => duckdb.close())

  const inDuckDB = async ({ name, returns }: ScalarFunction, args: readonly string[]): Promise<string> => {
    const call = `${name}(${args.join(', ')})`
    const value =
      returns === 'VARCHAR'
        ? `hex(encode(${call}))`
        : returns === 'BLOB'
          ? `hex(${call})`
          : returns === 'VARCHAR[]'
            ? `array_to_string(list_transform(${call}, lambda x: coalesce(hex(encode(x)), 'null')), ' ')`
            : returns === 'DOUBLE[]'
              ? `array_to_string(${call}, ' ')`
              : `CAST(${call} AS VARCHAR)`
    try {
      const [row] = await duckdb.rows(`SELECT ${value}`)
      return String(row![0])
    } catch {
      return 'failed'
    }
  }

  it.each(functions.map((each) => [each.name, each] as const))('reaches %s unchanged', async (_, definition) => {
    const wrong: unknown[] = []
    for (const text of TEXTS) {
      // The special text is one argument at a time, beside plain texts, and then all arguments.
      for (const at of [...definition.parameters.keys(), -1]) {
        const args = definition.parameters.map((type, i) => argument(type, at === -1 || at === i ? text : 'a'))
        const wanted = direct(
          definition,
          args.map(([, value]) => value),
        )
        const found = await inDuckDB(
          definition,
          args.map(([sql]) => sql),
        )
        if (found !== wanted) wrong.push({ text, at, wanted, found })
      }
    }
    expect(wrong).toEqual([])
  })

  it('is unchanged in a result, and in functions of DuckDB on the result', async () => {
    const [row] = await duckdb.rows(
      `SELECT hex(encode(u_reverse(${sqlText('abc\ufeff')}))), length(u_reverse(u_reverse(${sqlText('\ufeffabc')})))`,
    )
    expect(row).toEqual([hex('\ufeffcba'), '4'])
  })
})
