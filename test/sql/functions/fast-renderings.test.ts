import { createHmac } from 'node:crypto'
import { isIPv4 } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { renderTryCast } from '../../../src/sql/functions/casts.ts'
import { overloadsOf } from '../../../src/sql/functions/function-table.ts'
import { javaDouble, sqlDouble } from '../../../src/duckdb/scripts/double-text.ts'
import type { RenderArgument } from '../../../src/sql/functions/rendering.ts'
import { resolveDefinition } from '../../../src/sql/functions/resolve-function.ts'
import { zoneNames } from '../../../src/duckdb/zone-names.ts'
import { integer, literal, plainName, toText } from '../../../src/duckdb/text/sql.ts'
import { parseTypeText } from '../../../src/sql/types/type-names.ts'
import { openEngineConnection, type InProcessDuckDB } from '../../support/duckdb-in-process.ts'
import { propertyRuns } from '../../support/full-tests.ts'

// Some functions use DuckDB's own functions where these agree with the general implementation. Here both are
// compared.

let db: Pick<InProcessDuckDB, 'connection' | 'close'>
beforeAll(async () => {
  db = await openEngineConnection()
  // The general implementation of time zones: each offset is looked up where it is needed.
  const reported = [
    `told_minutes(z) AS (CAST(z[1]||'1' AS INT)*(CAST(z[2:3] AS INT)*60+CAST(z[5:6] AS INT)))`,
    `told_local(t,z) AS CASE WHEN z='UTC' THEN t WHEN z[1] IN ('+','-') THEN t+to_minutes(told_minutes(z)) ELSE timezone(z,t::TIMESTAMPTZ) END`,
    `told_off(t,z) AS told_local(t,z)-t`,
    `told_before(l,z) AS l-told_off(l-INTERVAL 1 DAY,z)`,
    `told_instant(l,z) AS CASE WHEN z='UTC' THEN l WHEN z[1] IN ('+','-') THEN l-to_minutes(told_minutes(z)) WHEN told_local(told_before(l,z),z)=l THEN told_before(l,z) WHEN timezone(z,timezone(z,l))=l THEN timezone(z,l)::TIMESTAMP ELSE told_before(l,z) END`,
    `told_joda(l,z) AS CASE WHEN told_off(l,z)<>told_off(l-told_off(l,z),z) AND told_off(l,z)<INTERVAL 0 SECOND AND told_off(l-told_off(l-told_off(l,z),z),z)<>told_off(l-told_off(l,z),z) THEN l-told_off(l,z) ELSE l-told_off(l-told_off(l,z),z) END`,
    `told_moved(t0,l,z) AS CASE WHEN told_off(l-told_off(t0,z),z)=told_off(t0,z) THEN l-told_off(t0,z) ELSE told_joda(l,z) END`,
    `told_zoned(s,l,z,p) AS CASE WHEN s IS NOT NULL THEN {'t': CASE WHEN p <= 3 THEN q_packed(s, q_instant(l, z)) ELSE q_instant(l, z) END, 'z': z} END`,
    `told_timestamp(t,p) AS q_year(t)||strftime(t,'-%m-%d %H:%M:%S')||CASE WHEN p=0 THEN '' ELSE '.'||left(strftime(t,'%f'),p) END`,
  ]
  for (const macro of reported) await db.connection.run(`CREATE MACRO ${macro}`)
})
afterAll(() => db.close())

async function column(sql: string): Promise<unknown[]> {
  return (await db.connection.runAndReadAll(sql)).getRowsJson().map(([value]) => value)
}

const values = (texts: readonly string[]): string =>
  `(VALUES ${texts.map((text, i) => `(${i}, ${toText(literal(text))})`).join(', ')}) t(i, x)`

describe('The text of a floating-point number', () => {
  it('has the shortest digits, as in JavaScript', async () => {
    const odd = [
      0, -0, 1, -1, 10, 100, 0.1, 123.456, -99.5, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 1e-7,
    ]
    const borders = [0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e7, 1e14, 1e15, 1e16, 1e17, 1e21, 1e22, 9999999.999999998, 0.1 + 0.2]
    const fraction = fc.tuple(fc.nat(99999), fc.nat(9)).map(([digits, decimals]) => digits / 10 ** decimals)
    const near = [...odd, ...borders].flatMap((x) => [x, -x, x * (1 + 2 ** -52), x * (1 - 2 ** -53)])
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.oneof(
            fc.double(),
            fc.integer(),
            fc.double({ min: -1e16, max: 1e16 }),
            fc.double({ min: -1, max: 1 }),
            fraction,
          ),
          {
            minLength: 300,
            maxLength: 300,
          },
        ),
        async (some) => {
          const all = [...some, ...near]
          const list = all.map((x) => `CAST('${Object.is(x, -0) ? '-0' : x}' AS DOUBLE)`).join(', ')
          expect(
            await column(`SELECT [q_sci(x), q_java_double(x), q_json_double(x)] FROM unnest([${list}]) t(x)`),
          ).toEqual(
            all.map((x) => [sqlDouble(x), javaDouble(x), Number.isFinite(x) ? javaDouble(x) : `"${javaDouble(x)}"`]),
          )
        },
      ),
      { numRuns: propertyRuns(10) },
    )
  })

  it('is as in JavaScript for powers of two and ten, although DuckDB writes 2^81, 2^91 and 2^807 wrong', async () => {
    const twos = Array.from({ length: 2098 }, (_, i) => 2 ** (i - 1074))
    const tens = Array.from({ length: 632 }, (_, i) => Number(`1e${i - 323}`))
    const all = [...twos, ...tens].flatMap((x) => [x, -x, x * (1 + 2 ** -52)]).filter(Number.isFinite)
    const list = all.map((x) => `CAST('${x}' AS DOUBLE)`).join(', ')
    expect(await column(`SELECT [q_sci(x), q_java_double(x)] FROM unnest([${list}]) t(x)`)).toEqual(
      all.map((x) => [sqlDouble(x), javaDouble(x)]),
    )
  })

  it.each([
    'q_sci(CAST(NULL AS DOUBLE))',
    'q_sci_real(CAST(NULL AS FLOAT))',
    'q_java_double(CAST(NULL AS DOUBLE))',
    'q_json_double(CAST(NULL AS DOUBLE))',
    'q_json_real(CAST(NULL AS FLOAT))',
    `q_iso_instant(CAST(NULL AS VARCHAR), 'UTC')`,
    `q_iso_instant_fine(CAST(NULL AS VARCHAR), 'UTC')`,
    'q_iso_date(CAST(NULL AS VARCHAR))',
    'q_text_to_date(CAST(NULL AS VARCHAR))',
    'q_text_to_timestamp(CAST(NULL AS VARCHAR), 3)',
    `q_text_to_instant(CAST(NULL AS VARCHAR), 3, 'UTC')`,
    'q_text_to_time(CAST(NULL AS VARCHAR), 3)',
    'q_text_to_time_zone(CAST(NULL AS VARCHAR), 3, 0)',
    'q_text_timestamp(CAST(NULL AS TIMESTAMP), 3)',
    'q_text_moment(CAST(NULL AS TIMESTAMP), 3)',
    `q_joda(CAST(NULL AS TIMESTAMP), 'Europe/Berlin')`,
    `q_instant(CAST(NULL AS TIMESTAMP), 'Europe/Berlin')`,
    `q_local(CAST(NULL AS TIMESTAMP), 'Europe/Berlin')`,
    `q_moved(CAST(NULL AS TIMESTAMP), CAST(NULL AS TIMESTAMP), 'Europe/Berlin')`,
    `q_rx_first(CAST(NULL AS VARCHAR), 'a', 0)`,
    `q_rx_position(CAST(NULL AS VARCHAR), 'a')`,
  ])('%s is NULL', async (call) => {
    expect(await column(`SELECT ${call} FROM range(1)`)).toEqual([null])
  })

  it("has the first seven digits of Java's text for type real", async () => {
    const floats = fc.array(
      fc.oneof(
        fc.float({ noNaN: true, noDefaultInfinity: true }),
        fc.nat(40_000_000).map(Math.fround),
        fc.nat(16_777_216).map((x) => x / 2),
        fc.nat(16_777_216).map((x) => x / 64),
        fc.nat(99_999_999).map((x) => Math.fround(x / 1e7)),
      ),
      { minLength: 500, maxLength: 500 },
    )
    await fc.assert(
      fc.asyncProperty(floats, async (some) => {
        const all = [
          ...some,
          1,
          1.5,
          16777216,
          1.4e-45,
          9.8e-45,
          3.4028235e38,
          -1e-10,
          1e7,
          9999999,
          0.001,
          8.82592e9,
          21316705e12,
        ]
        const reals = all.map(Math.fround).filter((x) => x !== 0)
        const from = `FROM unnest([${reals.map((x) => `CAST('${x}' AS FLOAT)`).join(', ')}]) t(x)`
        expect(await column(`SELECT q_sci_real(x) ${from}`)).toEqual(reals.map(realText))
      }),
      { numRuns: propertyRuns(5) },
    )
  })
})

/**
 * Java's text of a real, rounded to seven digits. Halves of whole numbers beyond Java's range of long go up, other
 * halves to even.
 */
function realText(x: number): string {
  const decimals = [2, 3, 4, 5, 6, 7, 8, 9].find((each) => Math.fround(Number(x.toPrecision(each))) === x)!
  const java = x.toPrecision(decimals)
  const written = Number(java)
  const digits = written.toExponential(7).replace(/^-|\.|e.*$/g, '')
  const isExact = Number.isInteger(written)
    ? Math.abs(written) >= 9.2e18 && /^\d{8}0+$/.test(String(BigInt(Math.abs(written))))
    : Math.fround(written) === written
  const isHalf = isExact && decimals === 8 && digits.endsWith('5')
  const isDown = isHalf && Number(digits[6]) % 2 === 0
  const [mantissa = '', exponent = ''] = (isDown ? downwards(written) : written).toExponential(6).split('e')
  return `${mantissa.replace(/0+$/, '').replace(/\.$/, '.0')}E${Number(exponent)}`
}

/** Subtracts less than half a unit of the seventh digit, so that no other digit changes. */
function downwards(x: number): number {
  return x * (1 - 1e-9)
}

describe('Time zones', () => {
  it('resolve ambiguous and missing local times by the general rules', async () => {
    const zones = [...zoneNames].filter((_, i) => i % 12 === 0)
    zones.push(
      'Europe/Berlin',
      'America/New_York',
      'Australia/Lord_Howe',
      'Pacific/Apia',
      'Africa/Casablanca',
      'UTC',
      '+05:30',
    )
    const moments = `SELECT z, l, l + to_hours(((hash(l) % 49)::BIGINT - 24)) AS t0 FROM (
      SELECT z, TIMESTAMP '1940-01-01' + to_minutes((hash(i, z) % 45000000)::BIGINT) AS l FROM range(150) r(i), unnest([${zones.map((zone) => `'${zone}'`).join(', ')}]) u(z)
      UNION ALL SELECT z, l + to_minutes(15 * k) FROM unnest([TIMESTAMP '2024-03-10 01:00:00', TIMESTAMP '2024-11-03 00:00:00', TIMESTAMP '2024-03-31 01:00:00', TIMESTAMP '2024-10-27 01:00:00', TIMESTAMP '2011-12-29 22:00:00', TIMESTAMP '2024-04-07 00:00:00', TIMESTAMP '2024-10-06 00:00:00', TIMESTAMP '0001-01-01 00:00:00', TIMESTAMP '1883-11-18 12:00:00']) v(l), range(-4, 20) w(k), unnest([${zones
        .slice(-7)
        .map((zone) => `'${zone}'`)
        .join(', ')}]) u(z))`
    for (const [fast, reported] of [
      ['q_joda(l, z)', 'told_joda(l, z)'],
      ['q_instant(l, z)', 'told_instant(l, z)'],
      ['q_local(l, z)', 'told_local(l, z)'],
      ['q_moved(t0, l, z)', 'told_moved(t0, l, z)'],
    ]) {
      const wrong = await column(
        `SELECT z || ' ' || l || ' ' || t0 FROM (${moments}) WHERE ${fast} IS DISTINCT FROM ${reported}`,
      )
      expect(wrong, fast).toEqual([])
    }
    expect(await column(`SELECT count(*) FROM (${moments}) WHERE q_joda(l, z) <> q_instant(l, z)`)).not.toEqual(['0'])
  })

  it.each([
    ['EST5EDT', '1850-01-01 00:30:00', '1849-12-31 19:33:58'],
    ['EST5EDT', '1950-10-17 00:30:00', '1950-10-16 19:30:00'],
    ['Africa/Casablanca', '2028-10-31 12:00:00', '2028-10-31 13:00:00'],
    ['America/Vancouver', '2028-12-31 12:00:00', '2028-12-31 04:00:00'],
    ['Europe/Vienna', '1945-04-02 00:59:59.999999', '1945-04-02 01:59:59.999999'],
    ['Europe/Vienna', '1945-04-02 01:00:00', '1945-04-02 03:00:00'],
    ['Europe/Vienna', '1945-04-12 01:00:00', '1945-04-12 02:00:00'],
    ['Europe/Berlin', '-200000-07-01 12:00:00', '-200000-07-01 12:53:28'],
    ['Europe/Berlin', '290000-07-01 12:00:00', '290000-07-01 14:00:00'],
    ['-05:30', '290000-07-01 12:00:00', '290000-07-01 06:30:00'],
    ['Asia/Kolkata', '1684-07-28 00:12:25.259007', '1684-07-28 06:05:53.259007'],
    ['Asia/Kolkata', '2255-06-05 23:47:34.740991', '2255-06-06 05:17:34.740991'],
    ['-05:30', '2255-06-05 23:47:34.740993', '2255-06-05 18:17:34.740993'],
    ['Europe/Berlin', 'infinity', 'infinity'],
  ])('%s at %s is %s, by the same rules as in Java', async (zone, instant, local) => {
    const moment = instant.startsWith('-')
      ? `make_timestamp(${instant.slice(0, 7)}, 7, 1, 12, 0, 0)`
      : `TIMESTAMP '${instant}'`
    const expected = local.startsWith('-')
      ? `make_timestamp(${local.slice(0, 7)}, 7, 1, 12, 53, 28)`
      : `TIMESTAMP '${local}'`
    expect(await column(`SELECT q_local(x, '${zone}') = ${expected} FROM (VALUES (${moment})) t(x)`)).toEqual([true])
  })
})

/** Calls a scalar function over texts: with a constant format, and with a format from a column. */
async function bothResults(
  name: string,
  type: string,
  format: string,
  from: string,
): Promise<readonly (readonly unknown[])[]> {
  const definition = overloadsOf(name).find(({ signature }) =>
    signature.startsWith(`${name}(${type.replace(/\(\d\).*/, '(')}`),
  )!
  const { render } = resolveDefinition(
    definition,
    [type, 'varchar'].map((each) => ({ kind: 'value', type: parseTypeText(each) })),
  )!
  const session = { timeZone: 'America/New_York', startTimeMillis: 0, user: 'somebody', groups: [] }
  let next = 0
  const names = { fresh: () => plainName(`n${next++}`) }
  const x: RenderArgument = { kind: 'value', sql: plainName('x') }
  const calls = [
    render({ args: [x, { kind: 'value', sql: literal(format), constant: format }], session, names }),
    render({ args: [x, { kind: 'value', sql: plainName('f') }], session, names }),
  ]
  const answers: unknown[][] = []
  for (const call of calls) {
    const one = `CAST(TRY(least(${toText(call)})) AS VARCHAR)`
    answers.push(await column(`SELECT ${one} FROM ${from}, (VALUES (${toText(literal(format))})) g(f) ORDER BY i`))
  }
  return answers
}

const oddMoments = [
  '2024-02-29 10:20:30',
  '2023-02-29 10:20:30',
  '2024-01-01 24:00:00',
  '2024-13-01 00:00:00',
  '0000-01-01 00:00:00',
  '0001-01-01 00:00:00',
  '0999-12-31 23:59:59',
  '-0001-01-01 00:00:00',
  '+2024-01-01 00:00:00',
  '12024-01-01 00:00:00',
  '2024-1-1 1:1:1',
  ' 2024-01-01 00:00:00',
  '2024-01-01 00:00:00 ',
  '2024-01-01  00:00:00',
  '2024-01-01 23:59:60',
  '2024-03-10 02:30:00',
  '2024-11-03 01:30:00',
  '1969-12-31 23:59:59',
  '2024-01-01T00:00:00',
  '',
  'x',
  '٢٠٢٤-01-01 00:00:00',
  '2024-01-01 00:00:00.1',
  '2024-01-01 00:00:00.123',
  '1960-01-01 00:00:00.123456',
  '2024-01-01 00:00:00.123456789',
  '1960-01-01 00:00:00.999999',
  '20240229102030',
  '20240229',
  '2024-02-29',
  '2024-02-30',
  '0000-00-00',
  '9999-12-31 23:59:59.999',
]
const digitsAndMarks = fc.string({ unit: fc.constantFrom(...'0123456789-: .TZ+'), maxLength: 27 })
const near = fc
  .tuple(fc.constantFrom(...oddMoments), fc.nat(30), fc.constantFrom('', '0', '9', ' ', 'T', '-'))
  .map(([text, at, char]) => text.slice(0, at) + char + text.slice(at + 1))
const someTexts = fc.array(fc.oneof(near, digitsAndMarks), { minLength: 150, maxLength: 150 })

describe('Texts of dates and times', () => {
  it.each([
    ['date_parse', '%Y-%m-%d %H:%i:%s'],
    ['date_parse', '%Y-%m-%d %T'],
    ['date_parse', '%Y-%m-%d'],
    ['date_parse', '%Y%m%d'],
    ['date_parse', '%Y%m%d%H%i%S'],
    ['date_parse', '%Y-%m-%d %H:%i:%s.%f'],
    ['date_parse', '%d/%m/%Y'],
    ['date_parse', '%H:%i'],
    ['date_parse', '%Y-%m'],
    ['date_parse', '%Y-%m-%d%%'],
    ['parse_datetime', 'yyyy-MM-dd HH:mm:ss'],
    ['parse_datetime', "yyyy-MM-dd'T'HH:mm:ss"],
    ['parse_datetime', 'yyyy-MM-dd HH:mm:ss.SSS'],
    ['parse_datetime', 'yyyyMMdd'],
    ['parse_datetime', 'y-M-d'],
    ['to_date', 'yyyy-mm-dd'],
    ['to_date', 'YYYYMMDD'],
    ['to_date', 'dd/mm/yyyy'],
    ['to_timestamp', 'yyyy-mm-dd hh24:mi:ss'],
    ['to_timestamp', 'yyyymmddhh24miss'],
    ['to_timestamp', 'yyyy-mm-ddThh24:mi:ss'],
    ['to_timestamp', 'yyyy-mm-dd hh:mi:ss'],
    ['to_timestamp', 'yy-mm-dd'],
  ])('%s by %s parses the same with a constant format as with a computed one', async (name, format) => {
    await fc.assert(
      fc.asyncProperty(someTexts, async (some) => {
        const [known, general] = await bothResults(name, 'varchar', format, values([...oddMoments, ...some]))
        expect(known).toEqual(general)
      }),
      { numRuns: propertyRuns(6) },
    )
  })

  it('parse_duration agrees with its general implementation', async () => {
    const number = fc.stringMatching(/^\s?\d{1,20}(\.\d{1,3})?$/)
    const unit = fc.constantFrom('ns', 'us', 'ms', 's', 'm', 'h', 'd', ' h', 's ', 'x', '', 'H', 'é', 'd\n')
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(number, unit), { minLength: 50, maxLength: 100 }), async (pairs) => {
        const from = values(pairs.map((pair) => pair.join('')))
        const all = (call: string): Promise<unknown[]> => column(`SELECT TRY(least(${call})) FROM ${from} ORDER BY i`)
        expect(await all('q_parse_duration(x)')).toEqual(await all('q_any_duration(x)'))
      }),
      { numRuns: propertyRuns(5) },
    )
  })

  it('from_iso8601_timestamp and from_iso8601_date agree with their general implementation', async () => {
    const variants = oddMoments.flatMap((text) => {
      const t = text.replace(' ', 'T')
      return [
        t,
        `${t}Z`,
        `${t}+05:30`,
        `${t}-14:00`,
        `${t}+14:30`,
        `${t}-00:00`,
        `${t}+00:00`,
        `${t}+0530`,
        `${t}-08`,
        `${t}z`,
      ]
    })
    const nanos = oddMoments.flatMap((text) =>
      ['.123456789Z', '.000000001Z', '.999999999Z', '.123456789', '.1234567890Z', '.12345678Z', '.12345678éZ'].map(
        (fraction) => text.replace(' ', 'T').replace(/\.\d*$/, '') + fraction,
      ),
    )
    await fc.assert(
      fc.asyncProperty(someTexts, async (some) => {
        const from = values([...variants, ...some, ...some.map((text) => text.replace(' ', 'T'))])
        const all = async (call: string): Promise<unknown[]> =>
          column(`SELECT CAST(TRY(least(${call})) AS VARCHAR) FROM ${from} ORDER BY i`)
        for (const zone of ['UTC', 'America/New_York']) {
          expect(await all(`q_iso_instant(x, '${zone}')`)).toEqual(
            await all(`q_parsed_datetime(u_iso_timestamp(x, 3), '${zone}')`),
          )
        }
        const fine = values([...variants, ...nanos, ...some])
        const allFine = async (call: string): Promise<unknown[]> =>
          column(`SELECT CAST(TRY(least(${call})) AS VARCHAR) FROM ${fine} ORDER BY i`)
        expect(await allFine(`q_iso_instant_fine(x, 'America/New_York')`)).toEqual(
          await allFine(`q_parsed_datetime_fine(u_iso_timestamp(x, 9), 'America/New_York')`),
        )
        expect(await all('q_iso_date(x)')).toEqual(await all(`DATE '1970-01-01' + CAST(u_iso_date(x) AS INTEGER)`))
        expect(await all('q_text_to_date(x)')).toEqual(
          await all(`DATE '1970-01-01' + CAST(u_text_to_date(x) AS INTEGER)`),
        )
        expect(await all('q_text_to_timestamp(x, 3)')).toEqual(await all('make_timestamp(u_text_to_timestamp(x, 3))'))
        expect(await all('q_text_to_timestamp(x, 6)')).toEqual(await all('make_timestamp(u_text_to_timestamp(x, 6))'))
      }),
      { numRuns: propertyRuns(2) },
    )
  })

  it('casts to timestamps and times with time zone agree with the general implementation', async () => {
    const zones = [
      '',
      ' UTC',
      ' Europe/Berlin',
      ' America/New_York',
      '+05:30',
      ' -08:00',
      '-00:00',
      '+00:00',
      '+14:30',
      '+9',
      ' GMT+2',
    ]
    const odd = ['  UTC', ' utc', ' Nowhere/Else', ' é', '+05:3é', '-05:60', ' ', '+', '\t+01:00', '+01:00 ']
    const fractions = ['', '.123', '.1', '.999999', '.123456', '.9999999', '.12345é']
    const whole = [
      '2020-02-29 23:59:59',
      '2021-02-29 00:00:00',
      '2020-03-29 02:30:00',
      '2020-10-25 02:30:00',
      '0001-01-01 00:00:00',
      '9999-12-31 23:59:59',
      '2020-01-01 24:00:00',
      '2020-01-01 25:00:00',
      '2020-01-01',
    ]
    const zoned = whole.flatMap((at) => fractions.flatMap((end) => [...zones, ...odd].map((zone) => at + end + zone)))
    const times = ['00:00:00', '23:59:59', '24:00:00', '12:34:56', '7:00:00', '29:00:00'].flatMap((at) =>
      fractions.flatMap((end) => [...zones, ...odd].map((zone) => at + end + zone)),
    )
    const agree = async (texts: readonly string[], known: string, general: string): Promise<void> => {
      const all = (call: string): Promise<unknown[]> =>
        column(`SELECT CAST(TRY(least(${call})) AS VARCHAR) FROM ${values(texts)} ORDER BY i`)
      expect(await all(known)).toEqual(await all(general))
    }
    // Failures are found row by row, so each precision tests only some of the texts.
    for (const p of [0, 3, 6]) {
      const some = (texts: readonly string[]): readonly string[] => texts.filter((_, i) => i % 5 === p % 5)
      await agree(
        [...some(zoned), ...oddMoments],
        `q_text_to_instant(x, ${p}, 'Europe/Paris')`,
        `told_zoned(x, make_timestamp(u_text_to_timestamp(x, ${p})), coalesce(nullif(u_text_zone(x), ''), 'Europe/Paris'), ${p})`,
      )
      await agree(some(times), `q_text_to_time(x, ${p})`, `q_time_of_micros(u_text_to_time_picos(x, ${p}) // 1000000)`)
      await agree(
        some(times),
        `q_text_to_time_zone(x, ${p}, -90)`,
        `{'t': CAST(q_time_of_micros(u_text_to_time_zone_picos(x, ${p}) // 1000000) AS TIME), 'o': CAST(u_text_time_offset(x, -90) AS INTEGER)}`,
      )
    }
  })

  const moments = `(SELECT i, make_timestamp(((hash(i) % 600000000000000)::BIGINT - 70000000000000) * 1000) AS x FROM range(300) r(i)
    UNION ALL SELECT i, make_timestamp((hash(i) % 4000000000000)::BIGINT * 1000) FROM range(300, 600) r(i)
    UNION ALL SELECT 600 + i, t FROM unnest([TIMESTAMP '0999-12-31 23:59:59.999', TIMESTAMP '1000-01-01', TIMESTAMP '9999-12-31 23:59:59.999', TIMESTAMP '10000-01-01', TIMESTAMP '0001-01-01', TIMESTAMP '0001-01-01' - INTERVAL 1 DAY, TIMESTAMP '1970-01-01 12:00:00', TIMESTAMP '1969-12-31 00:59:59.001']) WITH ORDINALITY u(t, i)) t`
  it.each([
    ['date_format', '%Y-%m-%d %H:%i:%s.%f'],
    ['date_format', '%y%c/%e %k %l %p %r %T %a %b %M %W %j %v %x %%'],
    ['date_format', '%Y'],
    ['date_format', 'plain %% %q'],
    ['format_datetime', 'yyyy-MM-dd HH:mm:ss.SSS'],
    ['format_datetime', "y yy Y M d H h m s S SS SSSSSS 'it''s' a % G C"],
    ['format_datetime', 'yyyyy-MMM-dd hh K k EEEE e w xxxx D'],
  ])('%s by %s prints the same with a constant format as with a computed one', async (name, format) => {
    const [known, general] = await bothResults(name, 'timestamp(3)', format, moments)
    expect(known).toEqual(general)
  })

  it.each(
    [3, 6].flatMap((precision) =>
      ['yyyy-mm-dd hh24:mi:ss', 'YY/M', 'yyMMDD hh:hh24', 'mmmm;yyyyyy_mmmi', '', "dd'mm'", 'dd é', '- %d'].map(
        (format) => [precision, format] as const,
      ),
    ),
  )('to_char of precision %i by %j prints the same with a constant or computed format', async (precision, format) => {
    const finer = precision === 6 ? '+ to_microseconds(i * 7 % 1000)' : ''
    const unit = precision === 6 ? 1 : 1000
    const from = `(SELECT i, {'t': x ${finer}, 'z': ['UTC', 'Europe/Berlin', '-03:30'][i % 3 + 1]} AS x FROM ${moments}
      UNION ALL SELECT -i, {'t': TIMESTAMP '1970-01-01' - to_microseconds(i * ${unit}), 'z': 'UTC'} FROM range(1, 3) r(i)
      UNION ALL SELECT 9999, NULL) t`
    const [known, general] = await bothResults('to_char', `timestamp(${precision}) with time zone`, format, from)
    expect(known).toEqual(general)
  })

  it.each([0, 1, 3, 5, 6])('timestamps of precision %i agree with the general implementation', async (precision) => {
    expect(await column(`SELECT q_text_timestamp(x, ${precision}) FROM ${moments}`)).toEqual(
      await column(`SELECT told_timestamp(x, ${precision}) FROM ${moments}`),
    )
  })
})

it("trim, ltrim and rtrim remove Java's blanks and nothing else", async () => {
  const blanks = [...[9, 13, 28, 31, 32, 32, 32].map((code) => String.fromCharCode(code)), '\u1680', '\u2028', '\u3000']
  const others = [
    'a',
    'b c',
    'é',
    '\u00a0',
    '\u0085',
    '\u2007',
    '\u200b',
    '\u202f',
    '\ufeff',
    '\u0001',
    '\u007f',
    '😀',
    'e\u0301',
    '\u0301',
    '漢',
  ]
  const texts = fc.array(fc.string({ unit: fc.constantFrom(...blanks, ...others, ' ', ' '), maxLength: 7 }), {
    minLength: 300,
    maxLength: 300,
  })
  const set = [9, 10, 11, 12, 13, 28, 29, 30, 31, 32, 0x1680, 0x2028, 0x2029, 0x205f, 0x3000]
    .concat(Array.from({ length: 11 }, (_, i) => 0x2000 + i).filter((code) => code !== 0x2007))
    .map((code) => `chr(${code})`)
    .join('||')
  await fc.assert(
    fc.asyncProperty(texts, async (some) => {
      const from = `${values(['', ' ', '  ', ' a ', '\t', ...some])}`
      const wrong = await column(
        `SELECT x FROM ${from} WHERE q_trim(x) <> trim(x, ${set}) OR q_ltrim(x) <> ltrim(x, ${set}) OR q_rtrim(x) <> rtrim(x, ${set})`,
      )
      expect(wrong).toEqual([])
      // The same for a char, whose padding does not count.
      const wrongChars = await column(
        `SELECT x FROM ${from} WHERE q_trim(x) <> q_trim(rtrim(x, ' ')) OR rtrim(q_ltrim(x), ' ') <> q_ltrim(rtrim(x, ' ')) OR q_rtrim(x) <> q_rtrim(rtrim(x, ' '))`,
      )
      expect(wrongChars).toEqual([])
    }),
    { numRuns: propertyRuns(10) },
  )
  expect(await column('SELECT q_trim(CAST(NULL AS VARCHAR))')).toEqual([null])
})

it('substr never throws, so that it may run before the condition that guards it', async () => {
  const bigints = [0, 1, 2, -1, -2, 100, -100, 101, 2 ** 32, -(2 ** 32), 2 ** 32 - 1]
  const limits = ['9223372036854775807', '(-9223372036854775807 - 1)', 'NULL']
  const numbers = [...bigints.map(String), ...limits].map((n) => `CAST(${n} AS BIGINT)`).join(', ')
  const texts = `'', 'a', 'äöü', '\u{1F600}b', repeat('x', 100), NULL`
  const rows = await column(`
    SELECT count(*) FILTER (q_substr(s, a) IS NULL OR length(q_substr3(s, a, n)) <= length(q_substr(s, a)))
    FROM (SELECT unnest([${texts}]) AS s), (SELECT unnest([${numbers}]) AS a), (SELECT unnest([${numbers}]) AS n)`)
  expect(Number(rows[0])).toBeGreaterThan(0)
})

const columnOf = {
  double: 'doubles',
  bigint: 'bigints',
  smallint: 'smallints',
  varchar: 'texts',
  'varchar(3)': 'texts',
} as const

it.each([
  ['%s|%d', ['bigint', 'bigint']],
  ['%d%%%s', ['smallint', 'varchar']],
  ['%s', ['varchar(3)']],
  ['%.2f', ['double']],
  ['%f %.0f', ['double', 'double']],
  ['%.15f', ['double']],
  ['%.3f', ['bigint']],
  ['%d', ['double']],
  ['%5d', ['bigint']],
  ['%s', ['bigint', 'bigint']],
  ['%s %s', ['bigint']],
  ['%', ['bigint']],
] as const)('format of the constant %s prints %s the same as with a computed pattern', async (pattern, types) => {
  const asked = ['varchar', ...types].map((type) => ({ kind: 'value', type: parseTypeText(type) }) as const)
  const { render } = resolveDefinition(overloadsOf('format')[0]!, asked)!
  const session = { timeZone: 'UTC', startTimeMillis: 0, user: 'somebody', groups: [] }
  let next = 0
  const names = { fresh: () => plainName(`n${next++}`) }
  const values = types.map((type): RenderArgument => ({ kind: 'value', sql: plainName(columnOf[type]) }))
  const [known, general] = [
    { kind: 'value', sql: literal(pattern), constant: pattern } as const,
    { kind: 'value', sql: plainName('f') } as const,
  ].map((first) => toText(render({ args: [first, ...values], session, names })))
  const double = fc.oneof(
    fc.double(),
    fc.tuple(fc.integer({ min: -9_999_999, max: 9_999_999 }), fc.nat(9)).map(([n, decimals]) => n / 10 ** decimals),
    fc.constantFrom(0, -0, 1.005, -0.005, -0.001, 0.125, 0.995, 999_999.995, 9_999_999.999, 1e7, 1e-3, 0.5, 1.5, -0.4),
  )
  const rows = fc.array(fc.tuple(double, fc.maxSafeInteger(), fc.constantFrom('', 'a%s', 'é\n😀', 'null')), {
    minLength: 200,
    maxLength: 200,
  })
  await fc.assert(
    fc.asyncProperty(rows, async (some) => {
      const written = some.map(
        ([x, n, text]) =>
          `(CAST('${Object.is(x, -0) ? '-0' : x}' AS DOUBLE), CAST(${n} AS BIGINT), CAST(${n % 32768} AS SMALLINT), ${toText(literal(text))})`,
      )
      const from = `(VALUES (NULL, NULL, NULL, NULL), ${written.join(', ')}) t(doubles, bigints, smallints, texts), (VALUES (${toText(literal(pattern))})) g(f)`
      const wrong = await column(
        `SELECT texts || doubles || bigints FROM ${from} WHERE TRY(least(${known})) IS DISTINCT FROM TRY(least(${general}))`,
      )
      expect(wrong).toEqual([])
    }),
    { numRuns: propertyRuns(2) },
  )
})

describe('Functions over bytes', () => {
  const bytes = fc.uint8Array({ maxLength: 70 }).map((some) => Buffer.from(some))
  const blob = (some: Buffer): string => `unhex('${some.toString('hex')}')`

  it('from_base64 and from_base64url agree in DuckDB and in JavaScript, including refusals', async () => {
    const written = bytes.map((some) => some.toString('base64'))
    const url = bytes.map((some) => some.toString('base64url'))
    const odd = fc.string({ unit: fc.constantFrom(...'AZaz09+/-_= é'), maxLength: 9 })
    const texts = fc.array(fc.oneof(written, url, odd), { minLength: 200, maxLength: 200 })
    await fc.assert(
      fc.asyncProperty(texts, async (some) => {
        const from = values([
          '',
          '=',
          '==',
          'QQ==',
          'QR==',
          'QQ',
          'QUI=',
          'QUJ=',
          'QQ=',
          'QQ=A',
          'Q=QQ',
          '==QQ',
          'QQ==QQ==',
          '_-',
          ...some,
        ])
        for (const name of ['from_base64', 'from_base64url']) {
          const wrong = await column(
            `SELECT x FROM ${from} WHERE TRY(least(q_${name}(x))) IS DISTINCT FROM TRY(least(u_${name}(x)))`,
          )
          expect(wrong, name).toEqual([])
        }
      }),
      { numRuns: propertyRuns(5) },
    )
  })

  it('from_utf8 agrees in DuckDB and in JavaScript', async () => {
    const odd = fc.array(
      fc.constantFrom(0x41, 0x80, 0xc0, 0xc3, 0xa4, 0xe2, 0x82, 0xac, 0xed, 0xa0, 0xf0, 0x9f, 0xff, 0),
    )
    const some = fc.array(
      fc.oneof(
        odd.map((all) => Buffer.from(all)),
        fc.string({ unit: 'binary', maxLength: 9 }).map((all) => Buffer.from(all)),
      ),
      { minLength: 200, maxLength: 200 },
    )
    await fc.assert(
      fc.asyncProperty(some, async (all) => {
        const from = `(VALUES ${all.map((each) => `(${blob(each)})`).join(', ')}) t(x), (VALUES (''), ('?'), ('é'), ('ab'), (NULL)) r(r)`
        const wrong = await column(
          `SELECT x FROM ${from} WHERE TRY(least(q_from_utf8(x, r))) IS DISTINCT FROM TRY(least(u_from_utf8(x, r)))`,
        )
        expect(wrong).toEqual([])
      }),
      { numRuns: propertyRuns(5) },
    )
  })

  it.each(['md5', 'sha1', 'sha256', 'sha512'])('hmac_%s agrees with Node for data of any length', async (hash) => {
    const asked = ['varbinary', 'varbinary'].map((type) => ({ kind: 'value', type: parseTypeText(type) }) as const)
    const { render } = resolveDefinition(overloadsOf(`hmac_${hash}`)[0]!, asked)!
    const session = { timeZone: 'UTC', startTimeMillis: 0, user: 'somebody', groups: [] }
    const args = ['x', 'k'].map((name): RenderArgument => ({ kind: 'value', sql: plainName(name) }))
    const call = toText(render({ args, session, names: { fresh: () => plainName('n') } }))
    const key = fc.uint8Array({ minLength: 1, maxLength: 140 }).map((some) => Buffer.from(some))
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(bytes, key), { minLength: 50, maxLength: 50 }), async (some) => {
        const from = `(VALUES ${some.map(([x, k], i) => `(${i}, ${blob(x)}, ${blob(k)})`).join(', ')}) t(i, x, k)`
        expect(await column(`SELECT lower(hex(${call})) FROM ${from} ORDER BY i`)).toEqual(
          some.map(([x, k]) => createHmac(hash, k).update(x).digest('hex')),
        )
      }),
      { numRuns: propertyRuns(3) },
    )
    // Data that is too long for the buffer between calls, and then short data.
    const large = [3968, 4096, 5000, 1].map((length) => Buffer.alloc(length, 'é'))
    const long = large.map((x, i) => `(${i}, ${blob(x)}, ${blob(Buffer.from('k'))})`)
    expect(await column(`SELECT lower(hex(${call})) FROM (VALUES ${long.join(', ')}) t(i, x, k) ORDER BY i`)).toEqual(
      large.map((x) => createHmac(hash, 'k').update(x).digest('hex')),
    )
    await expect(column(`SELECT ${call} FROM (VALUES ('a'::BLOB, ''::BLOB)) t(x, k)`)).rejects.toThrow('Empty key')
    expect(await column(`SELECT ${call} FROM (VALUES (NULL::BLOB, 'k'::BLOB)) t(x, k)`)).toEqual([null])
  })
})

/** Renders a call by the types of its arguments. Some arguments are constants. */
function called(
  name: string,
  args: readonly (readonly [type: string, value: string | number, isKnown?: true])[],
): string {
  const asked = args.map(([type]) => ({ kind: 'value', type: parseTypeText(type) }) as const)
  const definition = overloadsOf(name).find((each) => resolveDefinition(each, asked) !== undefined)!
  let next = 0
  return toText(
    resolveDefinition(definition, asked)!.render({
      args: args.map(([, value, isKnown]) => ({
        kind: 'value',
        sql: isKnown !== true ? plainName(String(value)) : typeof value === 'number' ? integer(value) : literal(value),
        ...(isKnown === true ? { constant: value } : {}),
      })),
      session: { timeZone: 'UTC', startTimeMillis: 0, user: 'somebody', groups: [] },
      names: { fresh: () => plainName(`n${next++}`) },
    }),
  )
}

describe('Functions over arrays', () => {
  it.each([
    ['BIGINT', fc.constantFrom('1', '2', '3', 'NULL', '-1')],
    ['VARCHAR', fc.constantFrom(`'a'`, `'A'`, `''`, 'NULL', `'é'`)],
    ['DOUBLE', fc.constantFrom('0.0', `CAST('-0' AS DOUBLE)`, `CAST('NaN' AS DOUBLE)`, '1.5', 'NULL')],
    [
      'STRUCT(a BIGINT, b VARCHAR)',
      fc.constantFrom(`{'a': 1, 'b': NULL}`, `{'a': 1, 'b': 'x'}`, `{'a': NULL, 'b': NULL}`, 'NULL'),
    ],
    ['BIGINT[]', fc.constantFrom('[1, NULL]', '[1]', '[]', 'NULL', '[NULL]')],
  ] as const)('agree for few and for many items of type %s', async (type, item) => {
    const list = fc.oneof(
      fc.array(item, { maxLength: 20 }).map((all) => `[${all.join(', ')}]`),
      fc.constant('NULL'),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(list, list), { minLength: 100, maxLength: 100 }), async (some) => {
        const rows = some.map(([a, b]) => `(CAST(${a} AS ${type}[]), CAST(${b} AS ${type}[]))`)
        const wrong = await column(`
          SELECT [a::VARCHAR, b::VARCHAR] FROM (VALUES ${rows.join(', ')}) t(a, b)
          WHERE q_array_distinct(a)::VARCHAR IS DISTINCT FROM (CASE WHEN a IS NOT NULL THEN q_at(a, q_firsts(a)) END)::VARCHAR
            OR (a IS NOT NULL AND b IS NOT NULL AND (
              q_among(a, b, true)::VARCHAR IS DISTINCT FROM q_at(a, q_firsts_among(a, b, true))::VARCHAR
              OR q_among(a, b, false)::VARCHAR IS DISTINCT FROM q_at(a, q_firsts_among(a, b, false))::VARCHAR))`)
        expect(wrong).toEqual([])
      }),
      { numRuns: propertyRuns(3) },
    )
  })

  it('join the same with a constant separator as with a computed one', async () => {
    const lists = `(VALUES ([]), (['a']), (['a', NULL, '', 'é']), ([NULL]), (NULL), (['']), (['', ''])) t(a)`
    for (const separator of ['', ',', '\u{1F600}', '%s']) {
      const from = `${lists}, (VALUES (${toText(literal(separator))})) s(s)`
      for (const [known, general] of [
        [
          called('array_join', [
            ['array(varchar)', 'a'],
            ['varchar', separator, true],
          ]),
          called('array_join', [
            ['array(varchar)', 'a'],
            ['varchar', 's'],
          ]),
        ],
        [
          called('concat_ws', [
            ['varchar', separator, true],
            ['array(varchar)', 'a'],
          ]),
          called('concat_ws', [
            ['varchar', 's'],
            ['array(varchar)', 'a'],
          ]),
        ],
      ] as const) {
        const same = `${known} IS NOT DISTINCT FROM ${general}`
        expect(await column(`SELECT a::VARCHAR FROM ${from} WHERE NOT (${same})`)).toEqual([])
        expect(await column(`SELECT count(${known}) FROM ${from}`)).toEqual(['6'])
      }
    }
  })

  it.each(['min', 'max'])('%s with a constant number of rows agrees with a computed number', async (name) => {
    const written = {
      bigint: 'x',
      varchar: 'x::VARCHAR',
      date: `DATE '2024-01-01' + x::INTEGER`,
      'decimal(20,2)': 'x::DECIMAL(20,2)',
      boolean: 'x > 50',
      varbinary: 'encode(x::VARCHAR)',
      'timestamp(3)': 'make_timestamp(x)',
      'char(3)': `rpad(x::VARCHAR, 3, ' ')`,
    }
    for (const [type, value] of Object.entries(written)) {
      const from = `(SELECT i % 7 AS g, CAST(5 AS BIGINT) AS n, ${value} AS v
        FROM (SELECT i, CASE WHEN i % 7 > 0 AND i % 11 > 0 THEN hash(i) % 100 END::BIGINT AS x FROM range(80) r(i)))`
      const [known, general] = [
        called(name, [
          [type, 'v'],
          ['bigint', 5, true],
        ]),
        called(name, [
          [type, 'v'],
          ['bigint', 'n'],
        ]),
      ]
      expect(await column(`SELECT ${known}::VARCHAR FROM ${from} GROUP BY g ORDER BY g`), type).toEqual(
        await column(`SELECT ${general}::VARCHAR FROM ${from} GROUP BY g ORDER BY g`),
      )
    }
  })
})

describe('Casts to decimals', () => {
  const x = plainName('x')
  const cast = (from: string, to: string): string => {
    let next = 0
    const names = { fresh: () => plainName(`v${next++}`) }
    const session = { timeZone: 'UTC', startTimeMillis: 0, user: 'u', groups: [] }
    return toText(renderTryCast(x, parseTypeText(from), parseTypeText(to), { names, session }))
  }
  const types = [
    'decimal(38,0)',
    'decimal(38,2)',
    'decimal(19,4)',
    'decimal(38,15)',
    'decimal(38,16)',
    'decimal(38,17)',
    'decimal(38,38)',
    'decimal(9,2)',
    'decimal(18,18)',
  ]
  const reported = (text: string, type: string): string =>
    `CAST(TRY_CAST(q_without_exponent(${text}) AS ${type}) AS VARCHAR)`
  const digits = (most: number): fc.Arbitrary<string> => fc.stringMatching(new RegExp(`^\\d{0,${most}}$`))

  it('read any text as a cast that keeps all digits', async () => {
    const written = fc
      .tuple(
        fc.constantFrom('', '-', '+'),
        digits(20),
        fc.constantFrom('', '.'),
        digits(22),
        fc.constantFrom('', '', 'e3', 'E-5', ' '),
      )
      .map((parts) => parts.join(''))
    const borders = [
      '',
      '.',
      '-',
      '9'.repeat(17),
      '9'.repeat(18),
      '9'.repeat(19),
      '999999999999999.5',
      '99999999999999.95',
      '9999999999999999.99',
      '-0.5',
      '0.49999999999999999999',
      '-99999999999999999.5',
      '1_000',
      ' 1',
      'é',
      '0'.repeat(40) + '1',
    ]
    await fc.assert(
      fc.asyncProperty(fc.array(written, { minLength: 200, maxLength: 200 }), async (some) => {
        const from = values([...borders, ...some])
        const isNumber = `regexp_full_match(x, '[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?')`
        for (const type of types) {
          const known = await column(`SELECT CAST(${cast('varchar', type)} AS VARCHAR) FROM ${from} ORDER BY i`)
          const general = await column(
            `SELECT CASE WHEN ${isNumber} THEN ${reported('lower(x)', type)} END FROM ${from} ORDER BY i`,
          )
          expect(known).toEqual(general)
        }
      }),
      { numRuns: propertyRuns(3) },
    )
  })

  it.each([
    ['double', 'DOUBLE', 'q_digits(x)'],
    ['real', 'FLOAT', 'q_real_digits(x)'],
  ])('read any %s as its digits', async (from, held, text) => {
    const number = fc.oneof(
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.double({ min: -1e6, max: 1e6, noNaN: true }),
      fc.integer(),
      fc.tuple(fc.integer({ min: -9999999, max: 9999999 }), fc.nat(9)).map(([n, decimals]) => n / 10 ** decimals),
    )
    const borders = [
      0, -0, 1e15, 1e17, 999999999999999.9, 99999.995, 9.5, 0.001, 123456, 1234567, 0.1234567, 16777216, 1e-40, 3e38,
    ]
    await fc.assert(
      fc.asyncProperty(fc.array(number, { minLength: 200, maxLength: 200 }), async (some) => {
        const fits = [...borders, ...some]
          .map((each) => (from === 'real' ? Math.fround(each) : each))
          .filter(Number.isFinite)
        const rows = fits.map((each, i) => `(${i}, CAST('${Object.is(each, -0) ? '-0' : each}' AS ${held}))`).join(', ')
        for (const type of types) {
          const known = await column(
            `SELECT CAST(${cast(from, type)} AS VARCHAR) FROM (VALUES ${rows}) t(i, x) ORDER BY i`,
          )
          const general = await column(`SELECT ${reported(text, type)} FROM (VALUES ${rows}) t(i, x) ORDER BY i`)
          expect(known).toEqual(general)
        }
      }),
      { numRuns: propertyRuns(3) },
    )
  })
})

it('The text of an interval has days, hours, minutes, seconds and milliseconds', async () => {
  const limit = 2n ** 63n
  const reported = (all: bigint): string => {
    const [sign, size] = all < 0n ? ['-', -all] : ['', all]
    const two = (n: bigint, width = 2): string => String(n).padStart(width, '0')
    const clock = [(size / 3_600_000n) % 24n, (size / 60_000n) % 60n, (size / 1000n) % 60n].map((n) => two(n)).join(':')
    return `${sign}${size / 86_400_000n} ${clock}.${two(size % 1000n, 3)}`
  }
  await fc.assert(
    fc.asyncProperty(fc.array(fc.bigInt({ min: -limit, max: limit - 1n }), { minLength: 50 }), async (some) => {
      const all = [
        0n,
        1n,
        -1n,
        86_399_999n,
        86_400_000n,
        -86_400_001n,
        limit - 1n,
        -limit,
        1n - limit,
        ...some.map((n, i) => n / 10n ** BigInt(i % 15)),
      ]
      const from = `unnest([${all.map((n) => `CAST(${n} AS BIGINT)`).join(', ')}]) t(x)`
      expect(await column(`SELECT q_text_interval_day(x) FROM ${from}`)).toEqual(all.map(reported))
    }),
    { numRuns: propertyRuns(5) },
  )
  expect(await column('SELECT q_text_interval_day(CAST(NULL AS BIGINT)) FROM range(1)')).toEqual([null])
})

it('array_join with a constant separator and a null replacement agrees with a computed separator', async () => {
  const lists = `(VALUES (0, ['a', NULL, '']), (1, []), (2, NULL), (3, [NULL]), (4, ['é', '😀']), (5, [''])) t(i, x)`
  for (const separator of ['', ',', 'é ']) {
    for (const other of [`'-'`, `''`, 'CAST(NULL AS VARCHAR)']) {
      expect(await column(`SELECT q_array_join_by(x, '${separator}', ${other}) FROM ${lists} ORDER BY i`)).toEqual(
        await column(`SELECT q_array_join3(x, s, ${other}) FROM ${lists}, (VALUES ('${separator}')) u(s) ORDER BY i`),
      )
    }
  }
})

it('from_hex and url_decode agree in DuckDB and in JavaScript', async () => {
  const digits = ['', 'ab', 'AB09', 'abc', 'zz', ' a', 'é', 'a\u0000', 'ff'.repeat(40)]
  expect(await column(`SELECT hex(TRY(least(q_from_hex(x)))) FROM ${values(digits)} ORDER BY i`)).toEqual(
    digits.map((text) => (/^([0-9a-f]{2})*$/i.test(text) ? text.toUpperCase() : null)),
  )
  await expect(column(`SELECT q_from_hex(x) FROM ${values(['ab', 'éé', 'ab'])}`)).rejects.toThrow(
    'not a hexadecimal digit: "é" = 233',
  )
  await expect(column(`SELECT q_from_hex(x) FROM ${values(['ab', 'abc'])}`)).rejects.toThrow('invalid input length 3')
  expect(await column('SELECT q_from_hex(CAST(NULL AS VARCHAR)) FROM range(1)')).toEqual([null])
  const texts = [
    '',
    'a b',
    '+a++',
    'é+😀',
    '%41+b',
    '%',
    '%4',
    'b%',
    '%zz',
    '%4\n',
    '%4g1',
    'a%C3%A9',
    '%ff+',
    '%C3+%A9',
    '%ED%A0%80',
    '%00',
    '%2B+%25',
  ]
  const both = `TRY(least(q_url_decode(x))), TRY(least(u_url_decode(x)))`
  const rows = (await db.connection.runAndReadAll(`SELECT ${both} FROM ${values(texts)} ORDER BY i`)).getRowsJson()
  expect(rows.map(([known]) => known)).toEqual(rows.map(([, general]) => general))
})

it('IP addresses are parsed, printed and found in networks as in Node, bit by bit', async () => {
  const odd = [
    '',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '1.2.3.256',
    '1..2.3',
    '1.2.3.4 ',
    '0.0.0.0',
    '255.255.255.255',
    '1.2.3.-4',
    '1.2.3.é',
    '.1.2.3',
    '1.2.3.',
    '0.00.0.0',
    '1e1.2.3.4',
  ]
  const quad = fc.ipV4()
  const network = fc.tuple(quad, fc.nat(32)).map(([text, bits]) => {
    const all = text.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n)
    const kept = (all >> BigInt(32 - bits)) << BigInt(32 - bits)
    return { text: `${[24n, 16n, 8n, 0n].map((by) => (kept >> by) & 255n).join('.')}/${bits}`, kept, bits }
  })
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(quad, fc.ipV4Extended()), { minLength: 50 }), network, async (some, within) => {
      const texts = [...odd, ...some]
      const found = await column(`SELECT u_ip_text(TRY(least(u_ip_parse(x)))) FROM ${values(texts)} ORDER BY i`)
      expect(found).toEqual(texts.map((text) => (isIPv4(text) ? text : null)))
      const quads = texts.filter(isIPv4)
      const contained = await column(
        `SELECT u_cidr_contains('${within.text}', u_ip_parse(x)) FROM ${values(quads)} ORDER BY i`,
      )
      const shift = BigInt(32 - within.bits)
      expect(contained).toEqual(
        quads.map(
          (text) =>
            text.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n) >> shift === within.kept >> shift,
        ),
      )
    }),
    { numRuns: propertyRuns(20) },
  )
  const six = ['2001:db8::1', '2001:db8:8000::', '::ffff:1.2.3.4', '::1']
  for (const [cidr, reported] of [
    ['2001:db8::/33', [true, false, false, false]],
    ['2001:db8::/32', [true, true, false, false]],
    ['::/0', [true, true, true, true]],
    ['::1/128', [false, false, false, true]],
  ] as const) {
    expect(await column(`SELECT u_cidr_contains('${cidr}', u_ip_parse(x)) FROM ${values(six)} ORDER BY i`)).toEqual(
      reported,
    )
  }
})

it('soundex skips characters that are no letters, and refuses letters without a code', async () => {
  const texts = [
    '',
    'Robert',
    'Rupert',
    'Ashcraft',
    'Tymczak',
    'h-w',
    'a1 b2',
    '😀Pfister',
    'o\u2019Hara',
    'lloyd',
    'HHW',
  ]
  expect(await column(`SELECT u_soundex(x) FROM ${values(texts)} ORDER BY i`)).toEqual([
    '',
    'R163',
    'R163',
    'A261',
    'T522',
    'H000',
    'A100',
    'P236',
    'O600',
    'L300',
    'H000',
  ])
  await expect(column(`SELECT u_soundex(x) FROM ${values(['Robért'])}`)).rejects.toThrow(
    'The character is not mapped: É (index=136)',
  )
  await expect(column(`SELECT u_soundex(x) FROM ${values(['abcdef𝐀'])}`)).rejects.toThrow(
    'The character is not mapped: 𝐀',
  )
})

it('split_to_multimap agrees with its general implementation, for distinct and repeated keys', async () => {
  const texts = ['', 'a=1', 'a=1,b=2', 'a=1,a=2', 'a=1,b=2,a=3', '=,b=', 'b=1,a=2', 'é=1,😀=2,']
  const [known, general] = await Promise.all(
    ['t_split_to_multimap(x, d, k)', `q_multimap(t_s2m_pairs(x, d, k, ''))`].map((call) =>
      column(`SELECT CAST(${call} AS VARCHAR) FROM ${values(texts)}, (VALUES (',', '=')) u(d, k) ORDER BY i`),
    ),
  )
  expect(known).toEqual(general)
})

it('The parts of a URL are those that one regular expression finds', async () => {
  const whole = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#([^#]*))?$/
  const reported = (url: string): (string | null)[] => {
    const [, protocol = '', authority = '', path = '', query, fragment = ''] = whole.exec(url) ?? []
    const isNone = !whole.test(url) || (protocol !== '' && authority === '' && path === '' && (query ?? '') === '')
    // Java's opaque URIs: a scheme, and a rest without a slash at its start.
    const isOpaque = protocol !== '' && !url.startsWith('/', protocol.length + 1)
    return isNone ? [null, null, null, null] : [protocol, isOpaque ? '' : path, isOpaque ? '' : (query ?? ''), fragment]
  }
  const url = fc.string({
    unit: fc.constantFrom('a', 'B', '1', ':', '/', '//', '?', '#', '@', '.', '-', 'http:', 'é', '='),
    maxLength: 10,
  })
  const odd = [
    '',
    ':',
    '//',
    '///',
    'a:',
    'a:?',
    'a:#',
    'a:b',
    '1a:b',
    ':a',
    'http://h',
    'http://h?q#f',
    '?a:b',
    '#a:b',
    '/a:b',
    'a#b#c',
    'a://b:1/c?d=e#f',
  ]
  await fc.assert(
    fc.asyncProperty(fc.array(url, { minLength: 100 }), async (some) => {
      const texts = [...odd, ...some]
      const parts = ['protocol', 'path', 'query', 'fragment'].map((part) => `u_url_part(x, '${part}')`)
      expect(await column(`SELECT [${parts.join(', ')}] FROM ${values(texts)} ORDER BY i`)).toEqual(texts.map(reported))
    }),
    { numRuns: propertyRuns(20) },
  )
})

it('The text of an offset has a sign, hours and minutes', async () => {
  const all = Array.from({ length: 2 * 1440 - 1 }, (_, i) => i - 1439)
  const two = (n: number): string => String(n).padStart(2, '0')
  for (const type of ['INTEGER', 'BIGINT']) {
    expect(
      await column(`SELECT q_offset_text(CAST(i - 1439 AS ${type})) FROM range(${all.length}) t(i) ORDER BY i`),
    ).toEqual(all.map((n) => `${n < 0 ? '-' : '+'}${two(Math.floor(Math.abs(n) / 60))}:${two(Math.abs(n) % 60)}`))
  }
  expect(await column('SELECT q_offset_text(CAST(NULL AS INTEGER)) FROM range(1)')).toEqual([null])
})
