/**
 * Literals to compare a column with, in Trino's SQL: values of the column, values between them, and values beyond
 * them.
 */
export const literals: Readonly<Record<string, readonly string[]>> = {
  bo: ['true', 'false'],
  i8: ["TINYINT '-128'", "TINYINT '-1'", "TINYINT '0'", "TINYINT '5'", "TINYINT '127'"],
  i16: ["SMALLINT '-32768'", "SMALLINT '0'", "SMALLINT '5'", "SMALLINT '32767'"],
  i32: ['-2147483648', '-1', '0', '5', '7', '2147483647'],
  i64: ["BIGINT '-9223372036854775808'", "BIGINT '-1'", "BIGINT '0'", "BIGINT '5'", '9223372036854775807'],
  u8: ["SMALLINT '0'", "SMALLINT '127'", "SMALLINT '130'", "SMALLINT '255'"],
  u32: ["BIGINT '0'", "BIGINT '2147483647'", "BIGINT '2147483649'", "BIGINT '4294967295'"],
  u64: ["DECIMAL '0'", "DECIMAL '9223372036854775808'", "DECIMAL '18446744073709551615'"],
  r: floats('REAL'),
  d: floats('DOUBLE'),
  d9: ["DECIMAL '-9999999.99'", "DECIMAL '0.00'", "DECIMAL '0.005'", "DECIMAL '1.50'", "DECIMAL '9999999.99'"],
  d18: ["DECIMAL '-1.0000'", "DECIMAL '0'", "DECIMAL '1.5'", "DECIMAL '99999999999999.9999'"],
  d38: ["DECIMAL '-1.5'", "DECIMAL '0'", "DECIMAL '1.5'", "DECIMAL '9999999999999999999999999999.9'"],
  s: ["''", "' '", "'A'", "'aa'", "'abcdefghijklmnop'", "'\\x41'", "'é'", "'日本'", "U&'\\+01F600'"],
  b: ["X''", "X'00'", "X'275c'", "X'616263'", "X'80'", "X'636166c3a9'", `X'${'ab'.repeat(32)}'`, "X'ffff'"],
  b16: [`X'${'00'.repeat(16)}'`, "to_utf8('0123456789abcdef')", `X'${'80'.repeat(16)}'`, `X'${'ff'.repeat(16)}'`],
  dt: ["DATE '0001-01-01'", "DATE '1969-12-31'", "DATE '1970-01-02'", "DATE '2024-02-29'", "DATE '9999-12-31'"],
  t3: ["TIME '00:00:00'", "TIME '01:02:03'", "TIME '12:00:00'", "TIME '23:59:59.999'"],
  t6: ["TIME '00:00:00.000001'", "TIME '01:02:03.000001'", "TIME '23:59:59.999999'"],
  t9: ["TIME '00:00:00.000000001'", "TIME '01:02:03.000000001'", "TIME '12:00:00'"],
  ts3: timestamps('123'),
  ts6: timestamps('123456'),
  ts9: timestamps('123456789'),
  tz: timestamps('123456').map((literal) => literal.replace(/'$/, " UTC'")),
  u: [
    "UUID '00000000-0000-0000-0000-000000000000'",
    "UUID '24924924-9249-2492-4924-924924924924'",
    "UUID 'ffffffff-ffff-ffff-ffff-ffffffffffff'",
  ],
}

function floats(type: 'REAL' | 'DOUBLE'): readonly string[] {
  return ['-Infinity', '-3.5', '-0.0', '0', '0.75', '1', '1e20', 'Infinity', 'NaN'].map((value) => `${type} '${value}'`)
}

function timestamps(fraction: string): readonly string[] {
  return [
    '0001-01-01 00:00:00',
    '1969-12-31 23:59:59.999999',
    '1970-01-01 00:00:00',
    `2023-11-14 22:13:20.${fraction}`,
  ].map((value) => `TIMESTAMP '${value}'`)
}

/**
 * Builds conditions on a column; the planner pushes each into the scan as far as possible.
 * @param all whether each comparison is made with each literal; otherwise each with some of them
 */
export function conditionsOn(column: string, own: readonly string[], all: boolean): readonly string[] {
  const [first, last] = [own[0]!, own.at(-1)!]
  const middle = own[own.length >> 1]!
  const operators = ['=', '<>', '<', '<=', '>', '>=', 'IS NOT DISTINCT FROM']
  const pairs = operators.flatMap((operator, index) =>
    (all ? own : [own[index % own.length]!, middle]).map((literal) => `${column} ${operator} ${literal}`),
  )
  return [
    ...new Set(pairs),
    ...(all ? own : [middle]).map((literal) => `NOT (${column} > ${literal})`),
    `${column} BETWEEN ${first} AND ${middle}`,
    `${column} NOT BETWEEN ${middle} AND ${last}`,
    `${column} IN (${middle}, ${last})`,
    `${column} NOT IN (${first}, ${middle})`,
    `${column} IS NULL`,
    `${column} = ${first} OR ${column} > ${middle}`,
    ...(all
      ? [
          `${column} BETWEEN ${middle} AND ${last}`,
          `${column} IN (${own.join(', ')})`,
          `${column} IS NOT NULL`,
          `${column} <> ${middle} AND ${column} <= ${last}`,
        ]
      : []),
  ]
}
