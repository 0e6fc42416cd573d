import { macro, type Macro } from './macro.ts'

/** Blanks of JSON. */
const S = String.raw`[ \t\n\r]*`
const WORD = 'true|false|null'
const INTEGER = '0|-?[1-9][0-9]*'

/**
 * JSON without escapes, of two levels at most, and without zeros that have a sign, which DuckDB drops: of a short text this
 * one pattern says what a reading says, and that Trino reads it too. (RE2 takes 3 ns a byte where a pattern does not begin
 * with a character that is known, which is four times what DuckDB takes to read JSON.)
 */
function usualJson(): string {
  const text = String.raw`"[^"\\\x00-\x1f]*"`
  const exponent = '(?:[eE][+-]?[0-9]+)?'
  const number = String.raw`-?[1-9][0-9]*(?:\.[0-9]+)?${exponent}|0${exponent}|-?0\.[0-9]+${exponent}`
  const scalar = `${text}|${number}|${WORD}`
  const containers = (item: string): string => {
    const member = `${text}${S}:${S}(?:${item})${S}`
    return String.raw`${scalar}|\[${S}(?:(?:${item})${S}(?:,${S}(?:${item})${S})*)?\]|\{${S}(?:${member}(?:,${S}${member})*)?\}`
  }
  return `'${S}(?:${containers(containers(scalar))})${S}'`
}
/** In bytes. */
const SHORT = 100

/**
 * What DuckDB takes for JSON and Trino does not: commas before an end, NaN and infinities in a container. Where it is within
 * a text nothing is lost but time. Each begins with the character that is searched for.
 */
const odd = [
  String.raw`',${S}(?:[\]}]|-?(?i:nan|inf))'`,
  String.raw`':${S}-?(?i:nan|inf)'`,
  String.raw`'\[${S}-?(?i:nan|inf)'`,
]

/** The same, and such zeros, in one pattern that is soon compiled. */
const anyOdd = String.raw`',${S}[\]}]|(?:^|[ \t\n\r\[:,])(?:-0|-?(?i:nan|inf))'`

/**
 * What DuckDB writes otherwise than Trino: escapes, characters beyond 16 bits, numbers with exponents and those with fractions
 * that Trino writes with exponents. Where such a number is within a text among other values only time is lost.
 */
const rewritten = String.raw`'\\|[^\x{0}-\x{ffff}]|^[^"].*(?:[0-9][eE]|[0-9]{8}\.|[^0-9]0\.000)|^(?:[0-9][eE]|[0-9]{8}\.|[^"0-9]?0\.000)'`

/** An object of scalars alone that DuckDB writes as Trino does. */
const flat = String.raw`'\{(?:"[^"\\\x{10000}-\x{10ffff}]*":(?:"[^"\\\x{10000}-\x{10ffff}]*"|${INTEGER}|${WORD}|-?[1-9][0-9]{0,6}\.[0-9]+),?)*\}'`

/**
 * A function of a document, of which `found` is sure to read what Trino reads: `q_json_…` of text, `q_json_canonical_…` of a
 * value of type json, which is JSON as Trino writes it. What is no JSON and what is odd is left to `general`, in JavaScript.
 */
function twoWays(name: string, parameters: string, found: string, general: string): readonly Macro[] {
  return (['', 'canonical_'] as const).map((kind) =>
    macro(`q_json_${kind}${name}(x${parameters})`, `CASE WHEN q_json_${kind}sure(x) THEN ${found} ELSE ${general} END`),
  )
}

/**
 * JSON read by DuckDB's own functions where they say what Trino does; numbers with fractions or exponents, containers and
 * what is no JSON to both go to JavaScript. A pointer (`/a/0`) and a path (`$.a[0]`) name the same place. Asked for a list of
 * places DuckDB gives a list, whose lambda looks at what is found without another reading.
 */
export const jsonMacros: readonly Macro[] = [
  macro('q_json_parse(x)', `coalesce(u_json_parsed(x), x)`),
  // DuckDB compiles patterns within a lambda for each chunk, and under TRY for each row.
  macro('q_json_plain(x)', `NOT regexp_matches(x, ${anyOdd}) AND json_valid(x)`),
  macro(
    'q_json_sure(x)',
    `
      strlen(x) < ${SHORT} AND regexp_full_match(x, ${usualJson()}) OR
          json_valid(x) AND ${odd.map((pattern) => `NOT regexp_matches(x, ${pattern})`).join(' AND ')} AND
          (NOT contains(x, '-0') OR NOT regexp_matches(x, '-0(?:[^.0-9]|$)'))
    `,
  ),
  // Halves of characters, as escapes, are no JSON to DuckDB.
  macro('q_json_canonical_sure(x)', String.raw`NOT contains(x, '\') OR json_valid(x)`),
  // Whether what DuckDB found at a place, a text without its quotes or a number, is what is written there.
  macro(
    'q_json_as_written(v)',
    String.raw`v >= ':' AND v < '[' OR v >= 'a' AND v < '{' OR NOT regexp_matches(v, '^(?:[\[{]|-?[0-9]+[.eE])')`,
  ),
  // Whether DuckDB wrote it as Trino does.
  macro(
    'q_json_alike(v)',
    String.raw`starts_with(v, '"') AND NOT contains(v, '\') AND strlen(v) = length(v) OR NOT regexp_matches(v, ${rewritten})`,
  ),
  // What DuckDB wrote of a value, where it is what Trino writes: without escapes and characters beyond 16 bits.
  macro(
    'q_json_native(v)',
    String.raw`
      list_transform([v], lambda qj5: CASE
        WHEN NOT contains(qj5, '\') AND (strlen(qj5) = length(qj5) OR NOT regexp_matches(qj5, '[^\x{0}-\x{ffff}]')) THEN qj5
      END)[1]
    `,
  ),
  // The same of a value with numbers, those that Trino writes with an exponent or as a text apart.
  macro(
    'q_json_native_numbers(v)',
    String.raw`
      list_transform([q_json_native(v)], lambda qj6: CASE
        WHEN NOT regexp_matches(qj6, '[0-9](?:[eE]|[0-9]{7}\.)|[^0-9]0\.000|NaN|Infinity') THEN qj6
      END)[1]
    `,
  ),
  macro('q_plain_double(x)', `x IS NULL OR x = 0 OR abs(x) >= 1e-3 AND abs(x) < 1e7`),
  macro('q_keys_in_order(m)', `list_transform([map_keys(m)], lambda qj7: q_in_order(qj7))[1]`),
  // Whether elements or members of a value of type json are to DuckDB as they stand in it: not null, of which a cast makes NULL.
  macro('q_json_listed(x)', `starts_with(x, '[') AND NOT regexp_matches(x, ${rewritten})`),
  macro('q_json_items(x)', `CAST(json_extract(x, '$[*]') AS VARCHAR[])`),
  macro('q_json_mapped(x)', `starts_with(x, '{') AND NOT contains(x, ':null') AND NOT regexp_matches(x, ${rewritten})`),
  // Whether the members of an object have one name each: those cast from rows may not.
  macro(
    'q_json_once(x)',
    `list_transform([json_keys(x)], lambda qj4: q_in_order(qj4) OR list_unique(qj4) = len(qj4))[1]`,
  ),
  macro(
    'q_in_order(k)',
    `
      len(k) <= 6 AND coalesce(k[1] < k[2], true) AND coalesce(k[2] < k[3], true) AND coalesce(k[3] < k[4], true)
          AND coalesce(k[4] < k[5], true) AND coalesce(k[5] < k[6], true)
    `,
  ),
  macro(
    'q_json_once_each(v)',
    `list_transform(json_keys(v, ['']), lambda qj3: CASE WHEN q_in_order(qj3) THEN true ELSE list_unique(qj3) = len(qj3) END)[1]`,
  ),
  // Text of one object at most, whose members have one name each. NULL where it is not sure.
  macro(
    'q_json_ordered(v)',
    String.raw`
      CASE
        WHEN regexp_full_match(v, ${flat}) THEN CASE WHEN q_json_once_each(v) THEN v END
        WHEN regexp_matches(v, ${rewritten}) THEN NULL
        WHEN NOT contains(v, '{') THEN v
        WHEN regexp_full_match(v, '\{[^{]*') AND q_json_once_each(v) THEN v
      END
    `,
  ),
  ...twoWays(
    'scalar_at',
    ', pointer, path',
    `
      coalesce(
        list_transform(json_extract_string(x, [pointer]), lambda qj2: CASE WHEN q_json_as_written(qj2) THEN qj2 END)[1],
        CASE WHEN json_value(x, pointer) IS NOT NULL THEN u_json_extract_scalar(x, path) END)
    `,
    'u_json_extract_scalar(x, path)',
  ),
  ...twoWays(
    'at',
    ', pointer, path',
    `
      coalesce(
        list_transform(CAST(json_extract(x, [pointer]) AS VARCHAR[]), lambda qj2: CASE WHEN q_json_alike(qj2) THEN qj2 END)[1],
        CASE WHEN json_type(x, pointer) IS NOT NULL THEN u_json_extract(x, path) END)
    `,
    'u_json_extract(x, path)',
  ),
  ...twoWays(
    'size_at',
    ', pointer, path',
    `
      coalesce(
        list_transform(json_keys(x, [pointer]), lambda qj2: CASE WHEN len(qj2) > 0 THEN len(qj2) END)[1],
        CAST(json_array_length(x, pointer) AS BIGINT))
    `,
    'u_json_size(x, path)',
  ),
  // SQL/JSON: what a path of members and elements finds by itself, without unwrapping an array, is what is there. A document
  // in which that may differ is unlike.
  macro(
    'q_json_exists(d, pointer, unlike, path, passed, failing)',
    `
      list_transform([d], lambda qj1: CASE WHEN NOT regexp_matches(qj1, unlike) AND q_json_plain(qj1) AND
          json_type(qj1, pointer) IS NOT NULL THEN true ELSE u_json_exists(qj1, path, passed, failing) END)[1]
    `,
  ),
  macro(
    'q_json_value(d, pointer, unlike, path, passed, empty, failing)',
    `
      list_transform([d], lambda qj1: CASE WHEN NOT regexp_matches(qj1, unlike) AND q_json_plain(qj1) THEN
        CASE json_type(qj1, pointer)
          WHEN 'VARCHAR' THEN 's'||json_extract_string(qj1, pointer)
          WHEN 'UBIGINT' THEN
            CASE WHEN TRY_CAST(json_extract_string(qj1, pointer) AS BIGINT) IS NULL
              THEN u_json_value(qj1, path, passed, empty, failing)
            ELSE 'i'||json_extract_string(qj1, pointer) END
          WHEN 'BIGINT' THEN 'i'||json_extract_string(qj1, pointer)
          WHEN 'BOOLEAN' THEN 'b'||json_extract_string(qj1, pointer)
          ELSE u_json_value(qj1, path, passed, empty, failing)
        END
      ELSE u_json_value(qj1, path, passed, empty, failing) END)[1]
    `,
  ),
  macro(
    'q_json_query(d, pointer, unlike, path, passed, options)',
    `
      list_transform([d], lambda qj1: CASE WHEN NOT regexp_matches(qj1, unlike) AND q_json_plain(qj1) AND
          json_type(qj1, pointer) IS NOT NULL THEN
        coalesce(q_json_ordered(CAST(json_extract(qj1, pointer) AS VARCHAR)), u_json_query(qj1, path, passed, options))
      ELSE u_json_query(qj1, path, passed, options) END)[1]
    `,
  ),
  // Elements are compared as JSON writes them: a number as wanted has neither fraction nor exponent.
  ...twoWays(
    'array_contains',
    ', kind, wanted, written',
    String.raw`
      CASE WHEN starts_with(x, '[') AND NOT contains(x, '\') THEN
        list_contains(CAST(json_extract(x, '$[*]') AS VARCHAR[]), written)
      ELSE u_json_array_contains(x, kind, wanted) END
    `,
    'u_json_array_contains(x, kind, wanted)',
  ),
  // Of numbers those with a fraction or an exponent alone may be the one that is wanted.
  ...twoWays(
    'array_contains_double',
    ', wanted',
    `
      CASE WHEN x IS NOT NULL AND NOT isfinite(wanted) THEN false
        WHEN starts_with(x, '[') AND wanted IS NOT NULL AND NOT regexp_matches(x, '[0-9][.eE]') THEN false
      ELSE u_json_array_contains(x, 'double', q_digits(wanted)) END
    `,
    `
      CASE WHEN x IS NOT NULL AND NOT isfinite(wanted) THEN false
      ELSE u_json_array_contains(x, 'double', q_digits(wanted)) END
    `,
  ),
  macro(
    'q_json_array_length(x)',
    `
      CASE WHEN (starts_with(x, '[') OR starts_with(x, '{')) AND q_json_sure(x) THEN
        CASE WHEN starts_with(x, '[') THEN CAST(json_array_length(x) AS BIGINT) END
      ELSE u_json_array_length(x) END
    `,
  ),
  macro(
    'q_json_canonical_array_length(x)',
    `
      CASE WHEN starts_with(x, '[') THEN
        CASE WHEN q_json_canonical_sure(x) THEN CAST(json_array_length(x) AS BIGINT) ELSE u_json_array_length(x) END
      END
    `,
  ),
  macro(
    'q_json_item(x, pointer, i)',
    String.raw`
      CASE WHEN starts_with(x, '[') AND q_json_sure(x) THEN
        coalesce(
          list_transform(CAST(json_extract(x, [pointer]) AS VARCHAR[]), lambda qj2: CASE
            WHEN starts_with(qj2, '{') OR starts_with(qj2, '[') THEN q_json_ordered(qj2)
            WHEN starts_with(qj2, '"') THEN CASE WHEN NOT contains(qj2, '\') THEN substring(qj2, 2, length(qj2) - 2) END
            WHEN qj2 <> 'null' AND NOT regexp_matches(qj2, '[.eE]') THEN qj2
            WHEN qj2 IN ('true', 'false') THEN qj2
          END)[1],
          CASE WHEN json_type(x, pointer) <> 'NULL' THEN u_json_array_get(x, i) END)
      ELSE u_json_array_get(x, i) END
    `,
  ),
  macro(
    'q_json_text(x)',
    String.raw`
      CASE
        WHEN regexp_full_match(x, '"[^"\\]*"') THEN substring(x, 2, length(x) - 2)
        WHEN regexp_full_match(x, '-?[0-9]+|true|false') THEN x
        ELSE u_json_text(x)
      END
    `,
  ),
  // Of a value of type json: members have one name each, and numbers are as they are written.
  macro(
    'q_json_canonical_item(x, pointer, i)',
    String.raw`
      CASE WHEN starts_with(x, '[') THEN
        CASE WHEN q_json_canonical_sure(x) THEN
          coalesce(
            list_transform(CAST(json_extract(x, [pointer]) AS VARCHAR[]), lambda qj2: CASE
              WHEN qj2 = 'null' THEN NULL
              WHEN starts_with(qj2, '"') THEN CASE WHEN NOT contains(qj2, '\') THEN substring(qj2, 2, length(qj2) - 2) END
              WHEN q_json_alike(qj2) THEN qj2
            END)[1],
            CASE WHEN json_type(x, pointer) <> 'NULL' THEN u_json_array_get(x, i) END)
        ELSE u_json_array_get(x, i) END
      END
    `,
  ),
  macro(
    'q_json_is_scalar(x)',
    `
      CASE
        WHEN (starts_with(x, '[') OR starts_with(x, '{')) AND q_json_sure(x) THEN false
        WHEN regexp_full_match(x, '${INTEGER}|${WORD}') THEN true
        ELSE u_is_json_scalar(x)
      END
    `,
  ),
  macro('q_json_canonical_is_scalar(x)', `NOT (starts_with(x, '[') OR starts_with(x, '{'))`),
]
