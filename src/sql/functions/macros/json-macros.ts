import { macro, type Macro } from './macro.ts'

/**
 * What DuckDB takes for JSON and Trino does not: commas before an end, NaN and infinities; and zeros with a sign, which
 * DuckDB drops. Where it is within a text nothing is lost but time.
 */
const odd = String.raw`',[ \t\n\r]*[\]}]|(?:^|[ \t\n\r\[:,])(?:-0|-?(?i:nan|inf))'`

/**
 * What DuckDB writes otherwise than Trino: escapes, characters beyond 16 bits, numbers with exponents and those with fractions
 * that Trino writes with exponents. Where such a number is within a text among other values only time is lost.
 */
const rewritten = String.raw`'\\|[^\x{0}-\x{ffff}]|^[^"].*(?:[0-9][eE]|[0-9]{8}\.|[^0-9]0\.000)|^(?:[0-9][eE]|[0-9]{8}\.|[^"0-9]?0\.000)'`

// Not one more: of five values DuckDB makes a join, which asks before the condition that guards it.
const scalars = `'VARCHAR','UBIGINT','BIGINT','BOOLEAN'`

/**
 * JSON read by DuckDB's own functions where they say what Trino does; numbers with fractions or exponents, containers and
 * what is no JSON to both go to JavaScript. A pointer (`/a/0`) and a path (`$.a[0]`) name the same place.
 */
export const jsonMacros: readonly Macro[] = [
  macro('q_json_plain(x)', `NOT regexp_matches(x, ${odd}) AND json_valid(x)`),
  // A part of a document as it stands, or NULL.
  macro('q_json_part(x)', `CASE WHEN NOT regexp_matches(x, ${rewritten}) THEN x END`),
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
  // Text of one object at most, whose members have one name each: those that stand in order have. NULL where it is not sure.
  macro(
    'q_json_ordered(x)',
    `
      list_transform([x], lambda qj2: CASE
        WHEN regexp_matches(qj2, ${rewritten}) THEN NULL
        WHEN NOT contains(qj2, '{') THEN qj2
        WHEN regexp_full_match(qj2, '\\{[^{]*') AND list_transform([json_keys(qj2)], lambda qj3: q_in_order(qj3))[1] THEN qj2
      END)[1]
    `,
  ),
  macro(
    'q_json_scalar_at(x, pointer, path)',
    `
      CASE WHEN q_json_plain(x) THEN
        CASE
          WHEN json_type(x, pointer) IN (${scalars}) THEN json_extract_string(x, pointer)
          WHEN json_type(x, pointer) = 'DOUBLE' THEN u_json_extract_scalar(x, path)
        END
      ELSE u_json_extract_scalar(x, path) END
    `,
  ),
  macro(
    'q_json_at(x, pointer, path)',
    `
      CASE WHEN q_json_plain(x) THEN
        CASE
          WHEN json_type(x, pointer) IS NOT NULL THEN
              coalesce(q_json_part(CAST(json_extract(x, pointer) AS VARCHAR)), u_json_extract(x, path))
        END
      ELSE u_json_extract(x, path) END
    `,
  ),
  macro(
    'q_json_size_at(x, pointer, path)',
    `
      CASE WHEN q_json_plain(x) THEN
        CASE
          WHEN json_type(x, pointer) = 'ARRAY' THEN CAST(json_array_length(x, pointer) AS BIGINT)
          WHEN json_type(x, pointer) = 'OBJECT' THEN len(json_keys(x, pointer))
          WHEN json_type(x, pointer) IS NOT NULL THEN 0
        END
      ELSE u_json_size(x, path) END
    `,
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
  macro(
    'q_json_array_contains(x, kind, wanted, written)',
    String.raw`
      CASE WHEN starts_with(x, '[') AND NOT contains(x, '\') AND q_json_plain(x) THEN
        list_contains(CAST(json_extract(x, '$[*]') AS VARCHAR[]), written)
      ELSE u_json_array_contains(x, kind, wanted) END
    `,
  ),
  // Of numbers those with a fraction or an exponent alone may be the one that is wanted.
  macro(
    'q_json_array_contains_double(x, wanted)',
    `
      CASE WHEN starts_with(x, '[') AND wanted IS NOT NULL AND NOT regexp_matches(x, '[0-9][.eE]') AND q_json_plain(x) THEN false
      ELSE u_json_array_contains(x, 'double', q_digits(wanted)) END
    `,
  ),
  macro(
    'q_json_array_length(x)',
    `
      CASE WHEN q_json_plain(x) THEN
        CASE WHEN starts_with(x, '[') OR json_type(x) = 'ARRAY' THEN CAST(json_array_length(x) AS BIGINT) END
      ELSE u_json_array_length(x) END
    `,
  ),
  macro(
    'q_json_item(x, pointer, i)',
    `
      CASE WHEN starts_with(x, '[') AND q_json_plain(x) THEN
        CASE
          WHEN json_type(x, pointer) IN (${scalars}) THEN json_extract_string(x, pointer)
          WHEN json_type(x, pointer) IN ('ARRAY','OBJECT') THEN
              coalesce(q_json_ordered(CAST(json_extract(x, pointer) AS VARCHAR)), u_json_array_get(x, i))
          WHEN json_type(x, pointer) <> 'NULL' THEN u_json_array_get(x, i)
        END
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
      CASE WHEN starts_with(x, '[') AND json_valid(x) THEN
        list_transform([CAST(json_extract(x, pointer) AS VARCHAR)], lambda qj5: CASE
          WHEN qj5 IS NULL OR qj5 = 'null' THEN NULL
          WHEN starts_with(qj5, '"') AND NOT contains(qj5, '\') THEN substring(qj5, 2, length(qj5) - 2)
          WHEN regexp_matches(qj5, ${rewritten}) THEN u_json_array_get(x, i)
          ELSE qj5
        END)[1]
      ELSE u_json_array_get(x, i) END
    `,
  ),
  macro(
    'q_is_json_scalar(x)',
    `
      CASE WHEN q_json_plain(x) THEN
        CASE WHEN starts_with(x, '[') OR starts_with(x, '{') THEN false ELSE json_type(x) NOT IN ('ARRAY','OBJECT') END
      ELSE u_is_json_scalar(x) END
    `,
  ),
]
