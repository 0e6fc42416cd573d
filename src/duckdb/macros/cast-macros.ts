import { keptField, macro, type Macro } from './macro.ts'

const cast = 'INVALID_CAST_ARGUMENT'
const range = 'NUMERIC_VALUE_OUT_OF_RANGE'
const bounds = `CAST(-9223372036854775808 AS DOUBLE) AND CAST(9223372036854775807 AS DOUBLE)`
const DAY = '86400000000'
const whole = `regexp_full_match(s, '\\d{4}-\\d{2}-\\d{2}( ([01]\\d|2[0-3]):\\d{2}:\\d{2}(\\.\\d{1,6})?)?')`
// Text shapes that are tested fastest: GLOB compares bytes. DuckDB alone would accept hour 24.
const day = '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]'
const clock = '[0-2][0-9]:[0-5][0-9]:[0-5][0-9]'
const thousandths = '.[0-9][0-9][0-9]'
// The beginning of a zone.
const zoned = '[-+ ]*'
const isoTime = `regexp_full_match(s, '[1-9]\\d{3}-\\d\\d-\\d\\dT(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,6})?(?:Z|[+-](?:0\\d|1[0-3]):[0-5]\\d)?')`

/** Conversions where DuckDB's own casts accept or refuse other values, with Trino's errors. */
export const castMacros: readonly Macro[] = [
  macro(
    'q_in_range(x, low, high, n)',
    `CASE WHEN x NOT BETWEEN low AND high THEN u_raise('${range}: Out of range for '||n||': '||x) ELSE x END`,
  ),
  macro('q_cannot_cast(x, t)', `CASE WHEN x IS NOT NULL THEN u_raise('${cast}: Cannot cast '''||x||''' to '||t) END`),
  macro(
    'q_text_not_decimal(x, t)',
    `
      CASE
        WHEN x IS NOT NULL THEN u_raise('${cast}: Cannot cast VARCHAR '''||x||''' to '||t||CASE
          WHEN TRY_CAST(x AS DOUBLE) IS NULL THEN '. Value is not a number.'
          ELSE '. Value too large.'
        END)
      END
    `,
  ),
  // The fewest digits, at least six, that are read back as the same real: DuckDB's text may have more digits.
  macro(
    'q_real_digits(x)',
    `
      CASE
        WHEN CAST(printf('%.5e', CAST(x AS DOUBLE)) AS FLOAT) = x THEN printf('%.5e', CAST(x AS DOUBLE))
        WHEN CAST(printf('%.6e', CAST(x AS DOUBLE)) AS FLOAT) = x THEN printf('%.6e', CAST(x AS DOUBLE))
        WHEN CAST(printf('%.7e', CAST(x AS DOUBLE)) AS FLOAT) = x THEN printf('%.7e', CAST(x AS DOUBLE))
        ELSE printf('%.8e', CAST(x AS DOUBLE))
      END
    `,
  ),
  // The text that Java writes; the smallest numbers have two digits too. Values that are not finite are not handled
  // here.
  macro(
    'q_real_text(x)',
    `
      CASE
        WHEN isfinite(x) AND (abs(x) >= 16777216 OR abs(x) >= 1e-3 AND length(CAST(x AS VARCHAR)) > 9) THEN q_real_digits(x)
        WHEN abs(x) < 1e-43 AND CAST(printf('%.1e', CAST(x AS DOUBLE)) AS FLOAT) = x THEN printf('%.1e', CAST(x AS DOUBLE))
        ELSE CAST(x AS VARCHAR)
      END
    `,
  ),
  // DuckDB reads decimals whose exponents do not fit, and refuses small exponents. Exponents beyond 1,000 count as
  // 1,000.
  macro(
    'q_without_exponent(s)',
    `
      CASE
        WHEN NOT contains(s, 'e') THEN s
        ELSE list_transform([{
          'n': CASE WHEN s LIKE '-%' THEN '-' ELSE '' END,
          'i': split_part(ltrim(split_part(s, 'e', 1), '+-'), '.', 1),
          'f': split_part(split_part(s, 'e', 1), '.', 2),
          'e': least(greatest(CAST(split_part(s, 'e', 2) AS DOUBLE), -1000), 1000)
        }], lambda qe1: qe1.n||q_shifted(qe1.i||qe1.f, CAST(length(qe1.i) + qe1.e AS BIGINT)))[1]
      END
    `,
  ),
  macro(
    'q_shifted(d, p)',
    `
      CASE
        WHEN p <= 0 THEN '0.'||repeat('0', -p)||d
        WHEN p >= length(d) THEN d||repeat('0', p - length(d))
        ELSE left(d, p)||'.'||substring(d, p + 1)
      END
    `,
  ),
  // For up to six digits, DuckDB writes exactly the digits of the real.
  macro(
    'q_real_decimal(x)',
    `
      CASE
        WHEN strlen(CAST(x AS VARCHAR)) <= 7 AND regexp_full_match(CAST(x AS VARCHAR), '-?[0-9]+\\.[0-9]+') THEN CAST(x AS VARCHAR)
        ELSE q_without_exponent(q_real_digits(x))
      END
    `,
  ),
  macro(
    'q_not_decimal(x, n, t)',
    `CASE WHEN x IS NOT NULL THEN u_raise('${cast}: Cannot cast '||n||' '''||x||''' to '||t) END`,
  ),
  macro(
    'q_fit(s, n, j)',
    `
      CASE
        WHEN length(s) > n THEN u_raise('${cast}: Value '||CASE WHEN j = '' THEN s ELSE j||' ('||s||')'
            END||' cannot be represented as varchar('||n||')')
        ELSE s
      END
    `,
  ),
  macro(
    'q_limit(s, n)',
    `
      CASE
        WHEN length(s) > n THEN u_fail('GENERIC_INTERNAL_ERROR: Character count exceeds length limit '||n||': '||s)
        ELSE s
      END
    `,
  ),
  // The value of a text; NULL when the text has none.
  macro(
    'q_read_boolean(s)',
    `CASE WHEN lower(s) IN ('true', 't', '1') THEN true WHEN lower(s) IN ('false', 'f', '0') THEN false END`,
  ),
  // Trims like Java's String.trim; DuckDB's trim removes every blank of Unicode.
  macro('q_number_text(s)', `regexp_extract(s, '^[\\x00-\\x20]*(.*?)[\\x00-\\x20]*$', 1, 's')`),
  macro(
    'q_read_any_double(s)',
    `
      CASE
        WHEN regexp_full_match(q_number_text(s), '[+-]?(NaN|Infinity|([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)')
            THEN coalesce(TRY_CAST(rtrim(q_number_text(s), 'fFdD') AS DOUBLE), TRY_CAST(q_number_text(s) AS DOUBLE), CAST(CASE WHEN
            starts_with(q_number_text(s), '-') THEN '-Infinity' ELSE 'Infinity' END AS DOUBLE))
      END
    `,
  ),
  // A text without blanks and suffixes is cast directly; a NULL result is tried again with the slower macro.
  macro(
    'q_read_double(s)',
    `
      coalesce(CASE WHEN regexp_full_match(s, '[+-]?[0-9]+(\\.[0-9]+)?([eE][+-]?[0-9]+)?') THEN TRY_CAST(s AS DOUBLE) END,
          q_read_any_double(s))
    `,
  ),
  macro(
    'q_floating_to_integer(x, low, high, n, f)',
    `
      CASE
        WHEN isnan(x) THEN u_raise('${cast}: Cannot cast '||f||' NaN to '||n)
        WHEN floor(abs(x) + 0.5) * sign(x) NOT BETWEEN low AND high THEN
            u_raise('${range}: Out of range for '||n||': '||q_java_double(x))
        ELSE floor(abs(x) + 0.5) * sign(x)
      END
    `,
  ),
  macro(
    'q_double_to_bigint(x)',
    `
      CASE
        WHEN isnan(x) OR x NOT BETWEEN ${bounds} OR x = CAST(9223372036854775807 AS DOUBLE) THEN
            u_raise('${cast}: Unable to cast '||q_java_double(x)||' to bigint')
        ELSE CAST(floor(abs(x) + 0.5) * sign(x) AS BIGINT)
      END
    `,
  ),
  macro(
    'q_real_to_bigint(x)',
    `
      CASE
        WHEN isnan(x) THEN u_raise('${cast}: Cannot cast real NaN to bigint')
        WHEN x >= CAST(9223372036854775807 AS DOUBLE) THEN CAST(9223372036854775807 AS BIGINT)
        WHEN x <= CAST(-9223372036854775808 AS DOUBLE) THEN CAST(-9223372036854775808 AS BIGINT)
        ELSE CAST(floor(abs(CAST(x AS DOUBLE)) + 0.5) * sign(x) AS BIGINT)
      END
    `,
  ),
  macro(
    'q_text_to_uuid(s)',
    `
      CASE
        WHEN s IS NULL THEN NULL
        WHEN length(s) <> 36 OR NOT regexp_full_match(s, '[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}') THEN
            u_raise('${cast}: '||CASE
          WHEN regexp_full_match(s, '[0-9a-fA-F]+(-[0-9a-fA-F]+){4}') THEN 'Invalid UUID string length: '||length(s)
          ELSE 'Cannot cast value to UUID: '||s
        END)
        ELSE CAST(s AS UUID)
      END
    `,
  ),
  macro(
    'q_binary_to_uuid(x)',
    `
      CASE
        WHEN octet_length(x) <> 16 THEN u_raise('${cast}: Invalid UUID binary length: '||octet_length(x))
        ELSE CAST(regexp_replace(lower(hex(x)), '^(.{8})(.{4})(.{4})(.{4})(.{12})$', '\\1-\\2-\\3-\\4-\\5') AS UUID)
      END
    `,
  ),
  // Java's cast (long) of a double that is not NaN.
  macro(
    'q_java_long(x)',
    `
      CASE
        WHEN x >= CAST(9223372036854775807 AS DOUBLE) THEN CAST(9223372036854775807 AS BIGINT)
        WHEN x <= CAST(-9223372036854775808 AS DOUBLE) THEN CAST(-9223372036854775808 AS BIGINT)
        ELSE CAST(trunc(x) AS BIGINT)
      END
    `,
  ),
  macro(
    'q_cast_map(l, keys)',
    `
      CASE
        WHEN len(list_distinct(keys)) < len(l) THEN u_raise('${cast}: duplicate keys')
        ELSE map_from_entries(l)
      END
    `,
  ),

  // A text of a shape that strptime can read; NULL for any other text.
  macro('q_shaped(s, shape, f)', `CASE WHEN s GLOB shape THEN try_strptime(s, f) END`),
  macro('q_plain_date(s)', `CASE WHEN s GLOB '${day}' THEN TRY_CAST(s AS DATE) END`),
  macro('q_text_to_date(s)', `coalesce(q_plain_date(s), DATE '1970-01-01' + CAST(u_text_to_date(s) AS INTEGER))`),
  macro(
    'q_iso_date(s)',
    `
      coalesce(CASE WHEN s NOT LIKE '0000%' THEN q_plain_date(s) END, CASE
        WHEN s IS NOT NULL THEN DATE '1970-01-01' + CAST(u_iso_date(s) AS INTEGER)
      END)
    `,
  ),
  macro('q_unit(p)', `CAST(10 ** (6 - p) AS BIGINT)`),
  macro(
    'q_plain_timestamp(s)',
    `
      CASE
        WHEN (s GLOB '${day} ${clock}' OR s GLOB '${day} ${clock}${thousandths}') AND NOT contains(s, ' 24') THEN
            TRY_CAST(s AS TIMESTAMP)
        WHEN ${whole} THEN TRY_CAST(s AS TIMESTAMP)
      END
    `,
  ),
  // Nothing is rounded as long as the text has no digits beyond the kept ones.
  macro(
    'q_text_to_timestamp(s, p)',
    `
      list_transform([q_plain_timestamp(s)], lambda qa4: CASE
        WHEN strlen(s) <= 20 + p AND qa4 IS NOT NULL THEN qa4
        WHEN qa4 IS NOT NULL THEN q_round(qa4, q_unit(p))
        ELSE make_timestamp(u_text_to_timestamp(s, p))
      END)[1]
    `,
  ),
  macro(
    'q_text_to_timestamp_fine(s, p)',
    `
      list_transform([u_text_to_timestamp_fine(s, p)], lambda qa1: CASE
        WHEN qa1 IS NOT NULL THEN {'t': make_timestamp(CAST(split_part(qa1, ' ', 1) AS BIGINT)), 'p':
            CAST(split_part(qa1, ' ', 2) AS INTEGER)}
      END)[1]
    `,
  ),
  macro('q_text_zone(s, z)', `CASE WHEN ${whole} THEN z ELSE coalesce(nullif(u_text_zone(s), ''), z) END`),
  // Trino packs milliseconds into 52 bits. The check uses the local time, so it is exact up to the offset of its zone.
  macro(
    'q_is_zonable(l, m)',
    `
      CASE
        WHEN l BETWEEN make_timestamp(-2251799813685248000) AND make_timestamp(2251799813685247999) THEN true
        WHEN l IS NOT NULL THEN u_raise(m||epoch_ms(l))
        ELSE false
      END
    `,
  ),
  macro(
    'q_packed(s, t)',
    `
      list_transform([t], lambda qa0: CASE
        WHEN epoch_ms(qa0) BETWEEN -2251799813685248 AND 2251799813685247 THEN qa0
        ELSE u_raise('INVALID_CAST_ARGUMENT: Value cannot be cast to timestamp with time zone: '||s)
      END)[1]
    `,
  ),
  // Length of the local time in a text of a usual shape: three, six or no digits of a fraction, then a blank or a sign.
  macro(
    'q_local_length(s)',
    `
      CASE
        WHEN s GLOB '${day} ${clock}${thousandths}${zoned}' THEN 23
        WHEN s GLOB '${day} ${clock}${zoned}' THEN 19
        WHEN s GLOB '${day} ${clock}${thousandths}[0-9][0-9][0-9]${zoned}' THEN 26
      END
    `,
  ),
  // The zone behind the time; NULL for text that is not a zone.
  macro(
    'q_written_zone(w)',
    `
      CASE
        WHEN w = ' UTC' THEN 'UTC'
        WHEN w GLOB '[-+]0[0-9]:[0-5][0-9]' AND NOT ends_with(w, '00:00') THEN w
        WHEN starts_with(w, ' ') THEN u_known_zone(substring(w, 2))
        ELSE u_known_zone(w)
      END
    `,
  ),
  macro(
    'q_plain_zoned(s, p)',
    `
      list_transform([q_local_length(s)], lambda qb2: CASE
        WHEN qb2 IS NOT NULL AND substring(s, 12, 2) <> '24' THEN list_transform([{
          'l': TRY_CAST(left(s, qb2) AS TIMESTAMP), 'z': ${keptField('q_written_zone(substring(s, qb2 + 1))')}
        }], lambda qb3: CASE
          WHEN qb3.l IS NULL OR qb3.z IS NULL THEN NULL
          WHEN qb2 <= 20 + p THEN qb3
          ELSE {'l': q_round(qb3.l, q_unit(p)), 'z': qb3.z}
        END)[1]
      END)[1]
    `,
  ),
  macro(
    'q_text_to_instant(s, p, z)',
    `
      list_transform([q_plain_zoned(s, p)], lambda qb4: list_transform([CASE
          WHEN qb4 IS NOT NULL THEN qb4
          ELSE {'l': CAST(q_text_to_timestamp(s, p) AS TIMESTAMP), 'z': CAST(q_text_zone(s, z) AS VARCHAR)}
        END], lambda qa2: CASE WHEN qa2.l IS NOT NULL THEN
          {'t': CASE WHEN p <= 3 THEN q_packed(s, q_instant(qa2.l, qa2.z)) ELSE q_instant(qa2.l, qa2.z) END, 'z': qa2.z}
      END)[1])[1]
    `,
  ),
  macro(
    'q_text_to_instant_fine(s, p, z)',
    `
      list_transform([{'l': CAST(q_text_to_timestamp_fine(s, p) AS STRUCT(t TIMESTAMP, p INTEGER)), 'z': CAST(q_text_zone(s, z) AS VARCHAR)}], lambda qa3: CASE
        WHEN qa3.l IS NOT NULL THEN {'t': CAST(q_instant(qa3.l.t, qa3.z) AS TIMESTAMP), 'p': qa3.l.p, 'z': qa3.z}
      END)[1]
    `,
  ),
  // A time of day in a usual shape without digits beyond the kept ones; NULL for any other text.
  macro(
    'q_plain_time(s, p)',
    `
      CASE
        WHEN strlen(s) <= 9 + p AND s < '24' AND (s GLOB '${clock}' OR s GLOB '${clock}${thousandths}'
            OR s GLOB '${clock}${thousandths}[0-9][0-9][0-9]') THEN TRY_CAST(s AS TIME)
      END
    `,
  ),
  macro(
    'q_text_to_time(s, p)',
    `
      list_transform([q_plain_time(s, p)], lambda qb5: CASE
        WHEN qb5 IS NOT NULL THEN qb5
        ELSE q_time_of_micros(u_text_to_time_picos(s, p) // 1000000)
      END)[1]
    `,
  ),
  macro(
    'q_plain_time_zone(s, p)',
    `
      CASE
        WHEN right(s, 6) GLOB '[-+]0[0-9]:[0-5][0-9]' THEN list_transform([q_plain_time(left(s, -6), p)], lambda qb6: CASE
          WHEN qb6 IS NOT NULL THEN {'t': qb6, 'o':
              CASE WHEN s[-6] = '-' THEN -1 ELSE 1 END * (CAST(s[-5:-4] AS INTEGER) * 60 + CAST(s[-2:] AS INTEGER))}
        END)[1]
      END
    `,
  ),
  macro(
    'q_text_to_time_zone(s, p, z)',
    `
      list_transform([q_plain_time_zone(s, p)], lambda qb7: CASE
        WHEN qb7 IS NOT NULL THEN qb7
        WHEN s IS NOT NULL THEN {'t': CAST(q_time_of_micros(u_text_to_time_zone_picos(s, p) // 1000000) AS TIME), 'o':
            CAST(u_text_time_offset(s, z) AS INTEGER)}
      END)[1]
    `,
  ),

  macro(
    'q_round_time(t, u)',
    `(TIME '00:00:00' + to_microseconds((datediff('us', TIME '00:00:00', t) + u // 2) // u * u))`,
  ),
  macro('q_trunc_time(t, u)', `(TIME '00:00:00' + to_microseconds(datediff('us', TIME '00:00:00', t) // u * u))`),
  macro(
    'q_round_picos(x, n)',
    `((x + CAST(10 ** n AS BIGINT) // 2) // CAST(10 ** n AS BIGINT) * CAST(10 ** n AS BIGINT) % 86400000000000000)`,
  ),
  macro('q_round_fine_picos(x, u)', `(x + u // 2) // u * u`),
  macro(
    'q_round_fine(x, p)',
    `
      CASE
        WHEN x IS NOT NULL THEN {'t': x.t + to_microseconds(q_round_fine_picos(x.p, CAST(10 ** (12 - p) AS INTEGER))
            // 1000000), 'p': CAST(q_round_fine_picos(x.p, CAST(10 ** (12 - p) AS INTEGER)) % 1000000 AS INTEGER)}
      END
    `,
  ),
  macro(
    'q_time_zone_key(x)',
    `((datediff('us', TIME '00:00:00', x.t) - CAST(x.o AS BIGINT) * 60000000 + ${DAY}) % ${DAY})`,
  ),
  macro('q_time_zone_key_picos(x)', `((x.t - CAST(x.o AS BIGINT) * 60000000000000 + ${DAY}000000) % ${DAY}000000)`),

  macro(
    'q_date_plus(d, i)',
    `
      CASE
        WHEN i % 86400000 <> 0 AND d IS NOT NULL THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: Cannot add hour, minutes or seconds to a date')
        ELSE d + CAST(i // 86400000 AS INTEGER)
      END
    `,
  ),
  macro(
    'q_from_unixtime(x)',
    `CASE WHEN isnan(x) THEN TIMESTAMP '1970-01-01' WHEN abs(x * 1000) >= 2251799813685248 THEN u_raise('INVALID_FUNCTION_ARGUMENT: Millis overflow: '||CAST(CAST(least(greatest(x * 1000, -9.2e18), 9.2e18) AS BIGINT) AS VARCHAR)) ELSE make_timestamp(CAST(floor(x * 1000 + 0.5) AS BIGINT) * 1000) END`,
  ),
  macro(
    'q_from_nanos(n, z)',
    `
      CASE
        WHEN n IS NOT NULL THEN {'t': make_timestamp(CAST(q_floordiv(n, 1000) AS BIGINT)), 'p': CAST((n -
            q_floordiv(n, 1000) * 1000) * 1000 AS INTEGER), 'z': ${keptField('z')}}
      END
    `,
  ),
  // Parts of the results of functions in JavaScript: microseconds, picoseconds and the zone, if there is one.
  macro('q_read_zone(r, z)', `coalesce(nullif(split_part(r, ' ', 3), ''), z)`),
  macro('q_read_time(r)', `make_timestamp(CAST(split_part(r, ' ', 1) AS BIGINT))`),
  macro(
    'q_zoned_at(l, z)',
    `CASE WHEN q_is_zonable(l, 'INVALID_FUNCTION_ARGUMENT: Millis overflow: ') THEN {'t': ${keptField('q_instant(l, z)')}, 'z': ${keptField('z')}} END`,
  ),
  macro(
    'q_parsed_datetime(s, z)',
    `
      list_transform([s], lambda qa5: CASE
        WHEN qa5 IS NOT NULL THEN list_transform([{'l': q_read_time(qa5), 'z': ${keptField('q_read_zone(qa5, z)')}}], lambda qa6:
            {'t': q_instant(qa6.l, qa6.z), 'z': qa6.z})[1]
      END)[1]
    `,
  ),
  macro(
    'q_parsed_datetime_fine(s, z)',
    `
      list_transform([s], lambda qa5: CASE
        WHEN qa5 IS NOT NULL THEN list_transform([{'l': q_read_time(qa5), 'z': ${keptField('q_read_zone(qa5, z)')}}], lambda qa6:
            {'t': q_instant(qa6.l, qa6.z), 'p': CAST(split_part(qa5, ' ', 2) AS INTEGER), 'z': qa6.z})[1]
      END)[1]
    `,
  ),
  // The shapes of a moment's text that are read fastest: the local time, with the ending of the zone.
  macro(
    'q_iso_plain(s)',
    `
      CASE
        WHEN (s GLOB '${day}T${clock}${thousandths}Z' OR s GLOB '${day}T${clock}Z') AND s >= '1' AND NOT contains(s, 'T24') THEN
            TRY_CAST(s AS TIMESTAMP)
      END
    `,
  ),
  macro(
    'q_iso_zone(s, z)',
    `
      CASE
        WHEN ends_with(s, 'Z') OR s[-6:] IN ('+00:00', '-00:00') THEN 'UTC'
        WHEN s[-6] IN ('+', '-') THEN s[-6:]
        ELSE z
      END
    `,
  ),
  macro(
    'q_iso_instant(s, z)',
    `
      list_transform([q_iso_plain(s)], lambda qa7: CASE
        WHEN qa7 IS NOT NULL THEN {'t': qa7, 'z': 'UTC'}
        WHEN s IS NOT NULL THEN list_transform([CASE WHEN ${isoTime} THEN TRY_CAST(s AS TIMESTAMP) END], lambda qa8: CASE
          WHEN qa8 IS NOT NULL THEN list_transform([q_iso_zone(s, z)], lambda qa9: q_zoned_at(date_trunc('millisecond', qa8), qa9))[1]
          ELSE q_parsed_datetime(u_iso_timestamp(s, 3), z)
        END)[1]
      END)[1]
    `,
  ),
  // To nanoseconds: texts with nine digits of a fraction, or without a fraction.
  macro(
    'q_iso_plain_fine(s)',
    `
      coalesce(q_iso_plain(s), CASE
        WHEN s GLOB '${day}T${clock}.${'[0-9]'.repeat(9)}Z' AND s >= '1' AND NOT contains(s, 'T24') THEN
            TRY_CAST(left(s, 26) AS TIMESTAMP)
      END)
    `,
  ),
  macro(
    'q_iso_instant_fine(s, z)',
    `
      list_transform([q_iso_plain_fine(s)], lambda qb1: CASE
        WHEN qb1 IS NOT NULL THEN
            {'t': qb1, 'p': CASE WHEN strlen(s) = 30 THEN CAST(substring(s, 27, 3) AS INTEGER) * 1000 ELSE 0 END, 'z': 'UTC'}
        WHEN s IS NOT NULL THEN q_parsed_datetime_fine(u_iso_timestamp(s, 9), z)
      END)[1]
    `,
  ),
  macro(
    'q_duration_of(n, unit)',
    `
      CAST(floor(CAST(n AS DOUBLE) * CASE unit
        WHEN 'ns' THEN 1e-6
        WHEN 'us' THEN 1e-3
        WHEN 'ms' THEN 1
        WHEN 's' THEN 1e3
        WHEN 'm' THEN 6e4
        WHEN 'h' THEN 3.6e6
        ELSE 8.64e7
      END + 0.5) AS BIGINT)
    `,
  ),
  macro(
    'q_any_duration(s)',
    `
      CASE
        WHEN regexp_full_match(s, '\\s*\\d+(\\.\\d+)?\\s*(ns|us|ms|s|m|h|d)\\s*') THEN
            q_duration_of(regexp_extract(s, '(\\d+(\\.\\d+)?)', 1), regexp_extract(s, '([a-zA-Z]+)', 1))
        WHEN s IS NOT NULL THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: duration is not a valid data duration string: '||s)
      END
    `,
  ),
  macro(
    'q_parse_duration(s)',
    `CASE WHEN regexp_full_match(s, '[0-9]+[smhd]') THEN q_duration_of(left(s, -1), right(s, 1)) ELSE q_any_duration(s) END`,
  ),
]
