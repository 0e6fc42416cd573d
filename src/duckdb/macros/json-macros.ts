import { macro, type Macro } from './macro.ts'

/** JSON's blanks. */
const S = String.raw`[ \t\n\r]*`
const WORD = 'true|false|null'
const INTEGER = '0|-?[1-9][0-9]*'

/**
 * A pattern of JSON with at most two levels, without escapes and without signed zeros (DuckDB drops the sign). For a
 * short text it replaces validation, and it also shows that Trino accepts the text. (RE2 takes 3 ns a byte when a
 * pattern does not begin with a known character; DuckDB needs a quarter of that to read JSON.)
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
/** The largest size of a short text, bytes. */
const SHORT = 100

/**
 * Patterns of texts that DuckDB accepts as JSON and Trino does not: commas before an end, NaN and infinities in a
 * container. A match inside a string only costs time. Each pattern begins with the character that is searched for.
 */
const odd = [
  String.raw`',${S}(?:[\]}]|-?(?i:nan|inf))'`,
  String.raw`':${S}-?(?i:nan|inf)'`,
  String.raw`'\[${S}-?(?i:nan|inf)'`,
]

/** The same patterns, and signed zeros, in one pattern that compiles fast. */
const anyOdd = String.raw`',${S}[\]}]|(?:^|[ \t\n\r\[:,])(?:-0|-?(?i:nan|inf))'`

/**
 * Patterns of values that DuckDB writes differently from Trino: escapes, characters beyond 16 bits, numbers with
 * exponents, and numbers with fractions that Trino writes with exponents. A match of such a number inside a string only
 * costs time.
 */
const rewritten = String.raw`'\\|[^\x{0}-\x{ffff}]|^[^"].*(?:[0-9][eE]|[0-9]{8}\.|[^0-9]0\.000)|^(?:[0-9][eE]|[0-9]{8}\.|[^"0-9]?0\.000)'`

/** An object with only scalars that DuckDB writes like Trino. */
const flat = String.raw`'\{(?:"[^"\\\x{10000}-\x{10ffff}]*":(?:"[^"\\\x{10000}-\x{10ffff}]*"|${INTEGER}|${WORD}|-?[1-9][0-9]{0,6}\.[0-9]+),?)*\}'`

/**
 * Two macros of a function of a document: `q_json_…` for text and `q_json_canonical_…` for a value of type json, which
 * is JSON as Trino writes it. `found` is used when DuckDB surely reads the same as Trino. Any other text is left to
 * `general`, in JavaScript.
 */
function textAndCanonical(name: string, parameters: string, found: string, general: string): readonly Macro[] {
  return (['', 'canonical_'] as const).map((kind) =>
    macro(`q_json_${kind}${name}(x${parameters})`, `CASE WHEN q_json_${kind}sure(x) THEN ${found} ELSE ${general} END`),
  )
}

/**
 * JSON functions by DuckDB's own functions where these give the same result as Trino. Numbers with fractions or
 * exponents, containers, and texts that are not JSON go to JavaScript. A pointer (`/a/0`) and a path (`$.a[0]`) name
 * the same value. DuckDB returns a list for a list of pointers; its lambda examines the result without reading the
 * document again.
 */
export const jsonMacros: readonly Macro[] = [
  macro('q_json_parse(x)', `coalesce(u_json_parsed(x), x)`),
  // DuckDB compiles patterns once for each chunk in a lambda, but for each row under TRY.
  macro('q_json_plain(x)', `NOT regexp_matches(x, ${anyOdd}) AND json_valid(x)`),
  macro(
    'q_json_sure(x)',
    `
      strlen(x) < ${SHORT} AND regexp_full_match(x, ${usualJson()}) OR
          json_valid(x) AND ${odd.map((pattern) => `NOT regexp_matches(x, ${pattern})`).join(' AND ')} AND
          (NOT contains(x, '-0') OR NOT regexp_matches(x, '-0(?:[^.0-9]|$)'))
    `,
  ),
  // DuckDB does not accept escaped halves of characters as JSON.
  macro('q_json_canonical_sure(x)', String.raw`NOT contains(x, '\') OR json_valid(x)`),
  // Whether a result of DuckDB, a text without its quotes or a number, is the same as in the document.
  macro(
    'q_json_as_written(v)',
    String.raw`v >= ':' AND v < '[' OR v >= 'a' AND v < '{' OR NOT regexp_matches(v, '^(?:[\[{]|-?[0-9]+[.eE])')`,
  ),
  // Whether DuckDB wrote the value like Trino.
  macro(
    'q_json_alike(v)',
    String.raw`starts_with(v, '"') AND NOT contains(v, '\') AND strlen(v) = length(v) OR NOT regexp_matches(v, ${rewritten})`,
  ),
  // DuckDB's text of a value, if Trino writes the same: without escapes and characters beyond 16 bits.
  macro(
    'q_json_native(v)',
    String.raw`
      list_transform([v], lambda qj5: CASE
        WHEN NOT contains(qj5, '\') AND (strlen(qj5) = length(qj5) OR NOT regexp_matches(qj5, '[^\x{0}-\x{ffff}]')) THEN qj5
      END)[1]
    `,
  ),
  // The same for a value with numbers, except numbers that Trino writes with an exponent or as a text.
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
  // Whether DuckDB reads the elements or members of a value of type json unchanged: without null, which a cast turns
  // into NULL.
  macro('q_json_listed(x)', `starts_with(x, '[') AND NOT regexp_matches(x, ${rewritten})`),
  macro('q_json_items(x)', `CAST(json_extract(x, '$[*]') AS VARCHAR[])`),
  macro('q_json_mapped(x)', `starts_with(x, '{') AND NOT contains(x, ':null') AND NOT regexp_matches(x, ${rewritten})`),
  // Whether the names of an object's members are unique: objects cast from rows may repeat names.
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
  // The text, if it has at most one object, with unique names. NULL if this is not certain.
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
  ...textAndCanonical(
    'scalar_at',
    ', pointer, path',
    `
      coalesce(
        list_transform(json_extract_string(x, [pointer]), lambda qj2: CASE WHEN q_json_as_written(qj2) THEN qj2 END)[1],
        CASE WHEN json_value(x, pointer) IS NOT NULL THEN u_json_extract_scalar(x, path) END)
    `,
    'u_json_extract_scalar(x, path)',
  ),
  ...textAndCanonical(
    'at',
    ', pointer, path',
    `
      coalesce(
        list_transform(CAST(json_extract(x, [pointer]) AS VARCHAR[]), lambda qj2: CASE WHEN q_json_alike(qj2) THEN qj2 END)[1],
        CASE WHEN json_type(x, pointer) IS NOT NULL THEN u_json_extract(x, path) END)
    `,
    'u_json_extract(x, path)',
  ),
  ...textAndCanonical(
    'size_at',
    ', pointer, path',
    `
      coalesce(
        list_transform(json_keys(x, [pointer]), lambda qj2: CASE WHEN len(qj2) > 0 THEN len(qj2) END)[1],
        CAST(json_array_length(x, pointer) AS BIGINT))
    `,
    'u_json_size(x, path)',
  ),
  // SQL/JSON: a path of members and elements finds the same in DuckDB if it does not unwrap an array. `unlike` matches
  // documents for which the result may differ.
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
  // Elements are compared by their JSON text: a wanted number has neither fraction nor exponent.
  ...textAndCanonical(
    'array_contains',
    ', kind, wanted, written',
    String.raw`
      CASE WHEN starts_with(x, '[') AND NOT contains(x, '\') THEN
        list_contains(CAST(json_extract(x, '$[*]') AS VARCHAR[]), written)
      ELSE u_json_array_contains(x, kind, wanted) END
    `,
    'u_json_array_contains(x, kind, wanted)',
  ),
  // Only numbers with a fraction or an exponent may be equal to the wanted number.
  ...textAndCanonical(
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
  // For a value of type json: names are unique, and numbers stay as written.
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
