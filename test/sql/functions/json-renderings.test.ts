import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { castFromJson, castToJson } from '../../../src/sql/functions/casts-json.ts'
import { parseJsonPath } from '../../../src/duckdb/json-path/json-path.ts'
import { plainPath } from '../../../src/duckdb/json-path/plain-path.ts'
import { javaDouble } from '../../../src/duckdb/scripts/double-text.ts'
import { JsonReader, JsonSyntaxError } from '../../../src/duckdb/scripts/json-reader.ts'
import { quoteJson, writeJson } from '../../../src/duckdb/scripts/write-json.ts'
import { tidied } from '../../../src/duckdb/scripts/json-tidy.ts'
import { resolveFunction } from '../../../src/sql/functions/resolve-function.ts'
import { literal, plainName, toText } from '../../../src/duckdb/text/sql.ts'
import { duckdbType } from '../../../src/sql/types/duckdb-representation.ts'
import type { SqlType } from '../../../src/sql/types/sql-type.ts'
import { parseTypeText } from '../../../src/sql/types/type-names.ts'
import { openEngineConnection, type InProcessDuckDB } from '../../support/duckdb-in-process.ts'
import { FULL_TESTS, propertyRuns } from '../../support/full-tests.ts'

// JSON as DuckDB reads it, compared with the implementation in JavaScript that is right for all texts.

let db: Pick<InProcessDuckDB, 'connection' | 'close'>
beforeAll(async () => {
  db = await openEngineConnection()
})
afterAll(() => db.close())

/** Valid and invalid texts of values. */
const scalars = [
  '0',
  '-0',
  '1',
  '-1',
  '1.10',
  '-0.0',
  '1e5',
  '1E+05',
  '0.1e-7',
  '1e999',
  '1.50',
  '-0.001',
  '0.00099',
  '-0.0009',
  '12345678.5',
  '1234567.50',
  '0.30000000000000004441',
  '100000000000000000000.0',
  '12345678901234567890123',
  '01',
  '1.',
  '.5',
  '+1',
  '-',
  '18446744073709551615',
  '18446744073709551616',
  '-9223372036854775808',
  '-9223372036854775809',
  'NaN',
  'nan',
  '-NaN',
  'Infinity',
  '-Infinity',
  'inf',
  'INF',
  'true',
  'false',
  'null',
  'True',
  'nul',
  'nullx',
  '',
  '""',
  '"x"',
  '"1.5"',
  '"nan"',
  '"a,]"',
  '"\\u0041"',
  '"\\ud83d\\ude00"',
  '"\\ud800"',
  '"😀"',
  '"é\\/\\n"',
  '"\\x"',
  '"\\u0001"',
  '"\u007f\u2028"',
  '"\t"',
  '"open',
  '"[1]"',
  '"{"',
  "'a'",
  '/*c*/1',
  '"null"',
  '\u00a01',
  '\ufeff1',
]
const names = ['"a"', '"a"', '"b"', '"aa"', '"\\u0061"', '"0"', '"1"', '"a b"', '""', 'a', '"a/b"', '"é"']
const space = fc.constantFrom('', '', '', ' ', '\n', '\t\r ', '\u000b', '\u00a0')

const json = fc.letrec<{ value: string; list: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    { weight: 3, arbitrary: fc.constantFrom(...scalars) },
    { weight: 2, arbitrary: tie('list') },
    { weight: 3, arbitrary: tie('object') },
  ),
  list: fc
    .tuple(fc.array(fc.tuple(space, tie('value'), space), { maxLength: 3 }), fc.constantFrom('', '', '', ',', ' , '))
    .map(([items, end]) => `[${items.map((item) => item.join('')).join(',')}${end}]`),
  object: fc
    .tuple(
      fc.array(fc.tuple(space, fc.constantFrom(...names), space, tie('value')), { maxLength: 4 }),
      fc.constantFrom('', '', '', ',', ', '),
    )
    .map(([members, end]) => `{${members.map(([a, name, b, value]) => `${a}${name}${b}:${value}`).join(',')}${end}}`),
})).value
const broken = fc.tuple(json, fc.nat(40), fc.nat(3)).map(([text, at, cut]) => text.slice(0, at) + text.slice(at + cut))
const framed = fc.tuple(space, json, fc.constantFrom('', ' ', '\n', 'x', ' 1', ',')).map((parts) => parts.join(''))
// A valid generated document.
const right = fc.json({ maxDepth: 3 }).map((text) => text.replaceAll(/\p{Surrogate}|\0/gu, '?'))
/** Each scalar as the first element of an array, at the top and nested. */
const first = scalars.flatMap((value) => [
  `[${value},1]`,
  `[[${value}]]`,
  `{"a":[${value}]}`,
  `[0,1,{"b":1,"a":[${value}]}]`,
])
const texts = fc.array(fc.oneof(json, broken, framed, right), { minLength: 200, maxLength: 200 })

const pointersAndPaths = [
  ['/a', '$.a'],
  ['/0', '$[0]'],
  ['/1', '$[1]'],
  ['/a/a', '$.a.a'],
  ['/a/0', '$.a[0]'],
  ['/0/b', '$[0].b'],
  ['/a b', '$["a b"]'],
  ['/é', '$.é'],
] as const

/** Checks that each pair of expressions gives the same result for any text. */
async function same(pairs: readonly (readonly string[])[]): Promise<void> {
  const columns = pairs.map(([known, general]) => `${known} IS NOT DISTINCT FROM ${general}`)
  await fc.assert(
    fc.asyncProperty(texts, async (some) => {
      // A literal cannot contain NUL.
      const rows = [...first, ...some].map((text) => `(${toText(literal(text.replaceAll('\0', '\u0001')))})`)
      const sql = `SELECT x, ${columns.join(', ')} FROM (SELECT x, TRY(least(q_json_parse(x))) AS parsed FROM (VALUES ${rows.join(', ')}) t(x))`
      const wrong: unknown[] = []
      for (const [x, ...alike] of (await db.connection.runAndReadAll(sql)).getRowsJson()) {
        alike.forEach((each, i) => each === true || wrong.push([x, pairs[i]![0]]))
      }
      expect(wrong).toEqual([])
    }),
    { numRuns: FULL_TESTS ? 5 : 2, endOnFailure: true },
  )
}

describe('A path of SQL/JSON', () => {
  const paths = [
    'lax $.a',
    'strict $.a',
    'lax $[0]',
    'strict $[1]',
    'lax $.a.b',
    'lax $.a[0]',
    'lax $[0].b',
    'lax $[0][1]',
  ]

  it('finds the same in DuckDB as in JavaScript', async () => {
    const pairs = paths.flatMap((path, i) => {
      const { pointer, unlike } = plainPath(parseJsonPath(path))!
      const failing = ['UNKNOWN', 'ERROR', 'DEFAULT'][i % 3]!
      return [
        [
          `TRY(q_json_value(x, '${pointer}', '${unlike}', '${path}', '{}', 'DEFAULT', '${failing}'))`,
          `TRY(u_json_value(x, '${path}', '{}', 'DEFAULT', '${failing}'))`,
        ],
        [
          `TRY(q_json_exists(x, '${pointer}', '${unlike}', '${path}', '{}', '${failing}'))`,
          `TRY(u_json_exists(x, '${path}', '{}', '${failing}'))`,
        ],
        [
          `TRY(q_json_query(x, '${pointer}', '${unlike}', '${path}', '{}', 'WITHOUT,KEEP,EMPTY ARRAY,${failing}'))`,
          `TRY(u_json_query(x, '${path}', '{}', 'WITHOUT,KEEP,EMPTY ARRAY,${failing}'))`,
        ],
      ]
    })
    await same(pairs)
  })

  it('uses DuckDB only if it has plain names and indexes', () => {
    for (const path of [
      'lax $',
      'lax $.*',
      'lax $[*]',
      'lax $[last]',
      'lax $[0 to 1]',
      'lax $."a b"',
      'lax $.a.size()',
      'lax $..a',
    ]) {
      expect(plainPath(parseJsonPath(path)), path).toBeUndefined()
    }
  })
})

/** The pairs over texts, and over the results of json_parse. */
function both(pairsOf: (kind: string, x: string) => readonly (readonly string[])[]): readonly (readonly string[])[] {
  return [...pairsOf('q_json_', 'x'), ...pairsOf('q_json_canonical_', 'parsed')]
}

/** Renders json_array_contains of a text. */
function rendered(kind: string, x: string, wanted: string): string {
  const types = [parseTypeText(kind === 'q_json_' ? 'varchar' : 'json'), parseTypeText('varchar')]
  const given = types.map((type) => ({ kind: 'value', type }) as const)
  const call = resolveFunction('json_array_contains', given).render({
    args: [
      { kind: 'value', sql: plainName(x) },
      { kind: 'value', sql: literal(wanted) },
    ],
    session: { timeZone: 'UTC', startTimeMillis: 0, user: 'somebody', groups: [] },
    names: { fresh: () => plainName('fresh') },
  })
  return toText(call)
}

describe('JSON functions with a path', () => {
  it('give the same in DuckDB as in JavaScript', async () => {
    const pairs = [
      ...both((kind, x) => [
        ...pointersAndPaths.flatMap(([pointer, path]) => [
          [`${kind}scalar_at(${x}, '${pointer}', '${path}')`, `u_json_extract_scalar(${x}, '${path}')`],
          [`${kind}at(${x}, '${pointer}', '${path}')`, `u_json_extract(${x}, '${path}')`],
          [`${kind}size_at(${x}, '${pointer}', '${path}')`, `u_json_size(${x}, '${path}')`],
        ]),
        [`${kind}array_length(${x})`, `u_json_array_length(${x})`],
        ...([0, 2] as const).map((i) => [`${kind}item(${x}, '/${i}', ${i})`, `u_json_array_get(${x}, ${i})`]),
        ...(
          [
            ['integer', '1'],
            ['integer', '18446744073709551615'],
            ['boolean', 'true'],
            ['text', 'x'],
            ['text', 'nan'],
            ['text', 'é/\n'],
            ['text', '😀'],
            ['text', '"'],
            ['text', '\\'],
            ['text', '[1]'],
            ['text', '\u007f\u2028'],
          ] as const
        ).map(([sort, wanted]) => [
          sort === 'text'
            ? rendered(kind, x, wanted)
            : `${kind}array_contains(${x}, '${sort}', '${wanted}', '${wanted}')`,
          `u_json_array_contains(${x}, '${sort}', '${wanted}')`,
        ]),
        [
          `${kind}array_contains_double(${x}, CAST(1.5 AS DOUBLE))`,
          `u_json_array_contains(${x}, 'double', q_digits(CAST(1.5 AS DOUBLE)))`,
        ],
        // A call that fails must fail in both implementations.
        [`TRY(${kind}is_scalar(${x}))`, `TRY(u_is_json_scalar(${x}))`],
      ]),
    ]
    await same(pairs)
  })
})

describe('Casts from JSON to another type', () => {
  // The target types, and their descriptions for JavaScript.
  const casts = [
    ['tinyint', 'tinyint'],
    ['smallint', 'smallint'],
    ['integer', 'integer'],
    ['bigint', 'bigint'],
    ['double', 'double'],
    ['real', 'real'],
    ['decimal(9,2)', ['decimal', 9, 2]],
    ['decimal(38,20)', ['decimal', 38, 20]],
    ['array(real)', ['array', 'real', 'array(real)']],
    ['array(decimal(9,2))', ['array', ['decimal', 9, 2], 'array(decimal(9,2))']],
    ['boolean', 'boolean'],
    ['array(bigint)', ['array', 'bigint', 'array(bigint)']],
    ['array(double)', ['array', 'double', 'array(double)']],
    ['array(json)', ['array', 'json', 'array(json)']],
    ['map(varchar,json)', ['map', 'varchar', 'json', 'map(varchar, json)']],
    ['array(boolean)', ['array', 'boolean', 'array(boolean)']],
    ['array(varchar)', ['array', 'varchar', 'array(varchar)']],
    ['map(varchar,integer)', ['map', 'varchar', 'integer', 'map(varchar, integer)']],
    ['map(varchar,varchar)', ['map', 'varchar', 'varchar', 'map(varchar, varchar)']],
    [
      'row(b bigint, a varchar)',
      [
        'row',
        [
          ['b', 'bigint'],
          ['a', 'varchar'],
        ],
        'row(b bigint, a varchar)',
      ],
    ],
    ['array(row(a double))', ['array', ['row', [['a', 'double']], 'row(a double)'], 'array(row(a double))']],
    [
      'row(c row(b boolean, a real), a array(row(a smallint)), b array(varchar))',
      [
        'row',
        [
          [
            'c',
            [
              'row',
              [
                ['b', 'boolean'],
                ['a', 'real'],
              ],
              'row(b boolean, a real)',
            ],
          ],
          ['a', ['array', ['row', [['a', 'smallint']], 'row(a smallint)'], 'array(row(a smallint))']],
          ['b', ['array', 'varchar', 'array(varchar)']],
        ],
        'row(c row(b boolean, a real), a array(row(a smallint)), b array(varchar))',
      ],
    ],
  ] as const
  const items = String.raw`1 -0 12 127 -128 1.5 99999 1234567890 9223372036854775807 123456789012345.12345678901234567 0.1 1.005 -0.005 999999.995 9999999.995 16777217 1e5 true false null "x" "" "a,]" "1" "\u00201" "é" "\n" "null" [1] {"a":1}`
  const item = fc.constantFrom(...items.split(' '))
  const list = fc.array(item, { maxLength: 4 }).map((items) => `[${items.join(',')}]`)
  const object = fc
    .array(fc.tuple(fc.constantFrom('a', 'b', 'é', '', 'a b', ':', '\\u0041'), item), { maxLength: 4 })
    .map((members) => `{${members.map(([name, value]) => `"${name}":${value}`).join(',')}}`)
  const nested = fc.letrec<{ value: string; list: string; row: string }>((tie) => ({
    value: fc.oneof({ maxDepth: 3 }, item, tie('list'), tie('row')),
    list: fc.array(fc.oneof(tie('row'), tie('value')), { maxLength: 3 }).map((items) => `[${items.join(',')}]`),
    row: fc
      .array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'A', 'd'), tie('value')), { maxLength: 4 })
      .map((members) => `{${members.map(([name, value]) => `"${name}":${value}`).join(',')}}`),
  }))
  const documents = fc.array(fc.oneof(item, list, object, nested.row, nested.list), { minLength: 150, maxLength: 150 })

  it('give the same in DuckDB as in JavaScript', async () => {
    const x = plainName('x')
    const pairs = [
      ['q_json_text(x)', 'u_json_text(x)'],
      ...casts.map(([name, reported]) => {
        const type = parseTypeText(name)
        return [
          toText(castFromJson(x, type)),
          `CAST(CAST(u_json_cast(x, '${JSON.stringify(reported)}') AS JSON) AS ${toText(duckdbType(type))})`,
        ]
      }),
    ]
    const columns = pairs.map(([known, general]) => `TRY(${known}) IS NOT DISTINCT FROM TRY(${general})`)
    await fc.assert(
      fc.asyncProperty(documents, async (some) => {
        const rows = some.map((text) => `(${toText(literal(JsonReader.canonical(text)))})`)
        const sql = `SELECT x, ${columns.join(', ')} FROM (VALUES ${rows.join(', ')}) t(x)`
        const wrong: unknown[] = []
        for (const [text, ...same] of (await db.connection.runAndReadAll(sql)).getRowsJson()) {
          same.forEach((each, i) => each === true || wrong.push([text, pairs[i]![0]]))
        }
        expect(wrong).toEqual([])
      }),
      { numRuns: propertyRuns(5), endOnFailure: true },
    )
  })
})

describe('Casts to JSON', () => {
  const text = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 5 }),
    fc.string({
      unit: fc.constantFrom('a', '"', '\\', '\u0001', '\n', '\u007f', '/', 'é', '😀', '1e5', '12345678.'),
      maxLength: 3,
    }),
  )
  const double = fc.oneof(
    fc.constantFrom(0, -0, 1e-3, 0.00099, 9999999.5, 1e7, -12345678.5, 1e21, Number.NaN, Infinity, -Infinity),
    fc.double({ min: -100, max: 100, noNaN: true }),
    fc.double(),
  )
  const bigint = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
  type Held = string | number | bigint | boolean | null | readonly Held[] | ReadonlyMap<string, Held>
  const orNull = <T extends Held>(made: fc.Arbitrary<T>): fc.Arbitrary<Held> => fc.option(made, { freq: 6 })
  const list = (item: fc.Arbitrary<Held>): fc.Arbitrary<Held> => fc.array(item, { maxLength: 4 })
  const fields = (...made: fc.Arbitrary<Held>[]): fc.Arbitrary<Held> =>
    fc.tuple(...made).map((values) => new Map(values.map((value, i) => ['a b C'.split(' ')[i]!, value])))
  const mapped = (value: fc.Arbitrary<Held>): fc.Arbitrary<Held> =>
    fc.array(fc.tuple(text, value), { maxLength: 8 }).map((entries) => new Map(entries))
  const row = fields(orNull(bigint), orNull(text), orNull(double))

  const written = (value: Held): string => {
    if (typeof value === 'string') return quoteJson(value)
    if (typeof value === 'number') return Number.isFinite(value) ? javaDouble(value) : `"${javaDouble(value)}"`
    if (Array.isArray(value)) return `[${value.map(written).join(',')}]`
    if (!(value instanceof Map)) return String(value)
    const members = value as ReadonlyMap<string, Held>
    return `{${[...members].map(([name, member]) => `${quoteJson(name)}:${written(member)}`).join(',')}}`
  }
  const inOrder = (value: Held): Held =>
    value instanceof Map
      ? new Map(
          [...(value as ReadonlyMap<string, Held>)].toSorted(([a], [b]) =>
            Buffer.compare(Buffer.from(a), Buffer.from(b)),
          ),
        )
      : value
  const sqlOf = (value: Held, type: SqlType): string => {
    if (value === null) return `CAST(NULL AS ${toText(duckdbType(type))})`
    switch (type.kind) {
      case 'varchar':
        return toText(literal(value as string))
      case 'array':
        return `CAST([${(value as readonly Held[]).map((item) => sqlOf(item, type.element)).join(', ')}] AS ${toText(duckdbType(type))})`
      case 'map': {
        const members = [...(value as ReadonlyMap<string, Held>)]
        return `CAST(MAP {${members.map(([k, v]) => `${toText(literal(k))}: ${sqlOf(v, type.value)}`).join(', ')}} AS ${toText(duckdbType(type))})`
      }
      case 'row':
        return `{${[...(value as ReadonlyMap<string, Held>).values()].map((v, i) => `'f${i}': ${sqlOf(v, type.fields[i]!.type)}`).join(', ')}}`
      default:
        return `CAST('${Object.is(value, -0) ? '-0' : String(value as number)}' AS ${toText(duckdbType(type))})`
    }
  }

  it.each<[string, fc.Arbitrary<Held>]>([
    ['array(varchar)', list(orNull(text))],
    ['array(bigint)', list(orNull(bigint))],
    ['array(double)', list(orNull(double))],
    ['array(array(boolean))', list(orNull(list(orNull(fc.boolean()))))],
    ['map(varchar, bigint)', mapped(orNull(bigint))],
    ['map(varchar, varchar)', mapped(orNull(text))],
    ['map(varchar, double)', mapped(orNull(double))],
    ['row(a bigint, b varchar, "C" double)', row],
    ['array(row(a bigint, b varchar, "C" double))', list(orNull(row))],
    ['row(a array(double), b row(a double))', fields(orNull(list(orNull(double))), orNull(fields(orNull(double))))],
    [
      'row(a bigint, A bigint)',
      fields(orNull(bigint), orNull(bigint)).map(
        (value) => new Map([...(value as Map<string, Held>)].map(([name, v]) => [name === 'b' ? 'A' : name, v])),
      ),
    ],
  ])("have Trino's text for values of %s, also for NULL and under TRY", async (name, made) => {
    const type = parseTypeText(name)
    let next = 0
    const cast = toText(castToJson(plainName('x'), type, { names: { fresh: () => plainName(`v${next++}`) } }))
    await fc.assert(
      fc.asyncProperty(fc.array(orNull(made), { minLength: 20, maxLength: 20 }), async (values) => {
        const rows = values.map((value, i) => `(${i}, ${sqlOf(value, type)})`).join(', ')
        const sql = `SELECT ${cast}, TRY(least(${cast})) FROM (VALUES ${rows}) t(i, x) ORDER BY i`
        const expected = values.map((value) =>
          value === null ? null : written(type.kind === 'map' ? inOrder(value) : value),
        )
        const rowsRead = (await db.connection.runAndReadAll(sql)).getRowsJson()
        expect(rowsRead).toEqual(expected.map((each) => [each, each]))
      }),
      { numRuns: propertyRuns(10) },
    )
  })
})

describe('`JsonReader`', () => {
  const read = <T>(parse: () => T): T | undefined => {
    try {
      return parse()
    } catch (error) {
      if (error instanceof JsonSyntaxError) return undefined
      throw error
    }
  }

  it('parses the same texts as JSON.parse', () => {
    fc.assert(
      fc.property(fc.oneof(json, broken, framed, right), (text) => {
        let taken = true
        try {
          JSON.parse(text)
        } catch {
          taken = false
        }
        expect(read(() => JsonReader.parse(text)) !== undefined).toBe(taken)
      }),
      { numRuns: propertyRuns(1500) },
    )
  })

  it('writes the same canonical text with and without a tree', () => {
    fc.assert(
      fc.property(fc.oneof(json, broken, framed, right), (text) => {
        expect(read(() => JsonReader.canonical(text))).toBe(read(() => writeJson(JsonReader.parse(text), true)))
      }),
      { numRuns: propertyRuns(1500) },
    )
  })

  it('removes only blanks if the canonical text needs no other change', () => {
    fc.assert(
      fc.property(fc.oneof(json, broken, framed, right), (text) => {
        const tidy = tidied(text)
        if (tidy !== undefined) expect(tidy).toBe(read(() => JsonReader.canonical(text)))
      }),
      { numRuns: propertyRuns(3000) },
    )
    const usual = ' { "a" : [ 1 , -2.5 , true, null,{ } ] ,\n"ab":"\u00e9" } '
    expect(tidied(usual)).toBe('{"a":[1,-2.5,true,null,{}],"ab":"\u00e9"}')
    const unusual = [
      '{"b":1,"a":2}',
      '{"a":1,"a":2}',
      '"\\n"',
      '-0',
      '1e5',
      '1.50',
      '01',
      '[1,]',
      '"\ud83d\ude00"',
      '1 2',
      '',
    ]
    expect(unusual.map(tidied)).toEqual(unusual.map(() => undefined))
  })

  it('keeps members with the same name in a copy, and counts them', () => {
    const text = '{"x": {"a":1, "a":2}}'
    const at = (): JsonReader => {
      const reader = new JsonReader(text)
      reader.seek(['x'])
      return reader
    }
    expect(at().copy()).toBe('{"a":1,"a":2}')
    expect(at().count()).toBe(2n)
    expect(JsonReader.canonical(text)).toBe('{"x":{"a":2}}')
  })
})
