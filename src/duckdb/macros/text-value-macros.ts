import { macro, type Macro } from './macro.ts'

const printable = `'[ !#-\\[\\]-~]*'`

/** Texts of values in the forms of CAST to varchar, JSON, Java and the wire. */
export const textValueMacros: readonly Macro[] = [
  macro('q_text_fraction(x)', `CASE WHEN x < 0 THEN '-0' ELSE '0' END||ltrim(CAST(x AS VARCHAR), '-')`),
  // Java's text of a real is a decimal number; as a double it has the same text.
  macro(
    'q_java_real(x)',
    `
      CASE
        WHEN isfinite(x) THEN list_transform([CAST(q_real_text(x) AS DOUBLE)], lambda qr1: q_java_double(qr1))[1]
        ELSE q_java_double(x)
      END
    `,
  ),
  macro('q_json_double(x)', `CASE WHEN isfinite(x) THEN q_java_double(x) ELSE '"'||q_java_double(x)||'"' END`),
  macro(
    'q_json_real(x)',
    `
      CASE
        WHEN isnan(x) THEN '"NaN"'
        WHEN isinf(x) THEN CASE WHEN x > 0 THEN '"Infinity"' ELSE '"-Infinity"' END
        ELSE q_java_real(x)
      END
    `,
  ),
  macro('q_json_quote(s)', `CASE WHEN regexp_full_match(s, ${printable}) THEN '"'||s||'"' ELSE u_json_quote(s) END`),
  macro(
    'q_wire_double(x)',
    `
      CASE
        WHEN isfinite(x) THEN to_json(x)
        WHEN isnan(x) THEN to_json('NaN')
        WHEN x > 0 THEN to_json('Infinity')
        WHEN x < 0 THEN to_json('-Infinity')
      END
    `,
  ),
  // Java's shortest digits. DuckDB writes nine digits where eight would do, and one digit for the smallest numbers
  // where Java writes two.
  macro(
    'q_shortest_real(x)',
    `
      CASE
        WHEN abs(x) < 1e-43 AND x <> 0 AND CAST(printf('%.1e', CAST(x AS DOUBLE)) AS FLOAT) = x THEN printf('%.1e', CAST(x AS DOUBLE))
        WHEN length(CAST(x AS VARCHAR)) > 9 AND CAST(printf('%.7e', CAST(x AS DOUBLE)) AS FLOAT) = x AND
            length(CAST(CAST(printf('%.7e', CAST(x AS DOUBLE)) AS DOUBLE) AS VARCHAR)) < length(CAST(x AS VARCHAR)) THEN
            CAST(CAST(printf('%.7e', CAST(x AS DOUBLE)) AS DOUBLE) AS VARCHAR)
        ELSE CAST(x AS VARCHAR)
      END
    `,
  ),
  macro(
    'q_wire_real(x)',
    `
      CASE
        WHEN isfinite(x) THEN CAST(q_shortest_real(x) AS JSON)
        WHEN isnan(x) THEN to_json('NaN')
        WHEN x > 0 THEN to_json('Infinity')
        WHEN x < 0 THEN to_json('-Infinity')
      END
    `,
  ),
  macro(
    'q_text_date(d)',
    `
      CASE
        WHEN d BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN CAST(d AS VARCHAR)
        ELSE ltrim(q_year(d), '+')||strftime(d, '-%m-%d')
      END
    `,
  ),
  macro(
    'q_wire_date(d)',
    `
      CASE
        WHEN d BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN CAST(d AS VARCHAR)
        ELSE q_year(d)||strftime(d, '-%m-%d')
      END
    `,
  ),
  macro(
    'q_text_time(x, p)',
    `
      left(CAST(x AS VARCHAR)||CASE WHEN contains(CAST(x AS VARCHAR), '.') THEN '' ELSE '.' END||'000000', CASE WHEN
          p = 0 THEN 8 ELSE 9 + p END)
    `,
  ),
  macro(
    'q_text_time_picos(x, p)',
    `
      left(q_text_time(TIME '00:00:00' + to_microseconds(x // 1000000), 6)||lpad(CAST(x % 1000000 AS VARCHAR), 6,
          '0'), CASE WHEN p = 0 THEN 8 ELSE 9 + p END)
    `,
  ),
  macro(
    'q_text_timestamp_fine(x, p)',
    `
      CASE
        WHEN p <= 6 THEN q_text_timestamp(x.t, least(p, 6))
        ELSE q_text_timestamp(x.t, 6)||left(lpad(CAST(x.p AS VARCHAR), 6, '0'), p - 6)
      END
    `,
  ),
  macro('q_time_of_micros(m)', `(TIME '00:00:00' + to_microseconds(m))`),
  macro('q_offset_zone(o)', `CASE WHEN o = 0 THEN 'UTC' ELSE q_offset_text(o) END`),
  macro(
    'q_iso_offset(x)',
    `
      list_transform([epoch_us(q_local(x.t, x.z)) - epoch_us(x.t)], lambda qo1: CASE
        WHEN qo1 % 60000000 <> 0 THEN
            u_raise('INVALID_ARGUMENTS: Timezone with non-zero seconds offset cannot be rendered as ISO8601')
        WHEN qo1 = 0 THEN 'Z'
        ELSE q_offset_text(qo1 // 60000000)
      END)[1]
    `,
  ),
  macro('q_year_of_era(t)', `CASE WHEN year(t) <= 0 THEN 1 - year(t) ELSE year(t) END`),
  macro(
    'q_padded_year(y)',
    `
      CASE WHEN y < 0 THEN '-' ELSE '' END||lpad(CAST(abs(y) AS VARCHAR), CAST(greatest(4, length(CAST(abs(y) AS
          VARCHAR))) AS INTEGER), '0')
    `,
  ),
  macro(
    'q_color_text(c)',
    `
      CASE
        WHEN c < 0 THEN ['black','red','green','yellow','blue','magenta','cyan','white'][-c]
        ELSE '#'||lpad(printf('%x', c), 6, '0')
      END
    `,
  ),
]
