import { macro, type Macro } from './macro.ts'

const bad = 'INVALID_FUNCTION_ARGUMENT'
const LIKE_ESCAPE = `Escape character must be followed by ''%'', ''_'' or the escape character itself`

/**
 * Characters that no trim with one argument removes, neither Trino's nor DuckDB's: the class leaves out a superset of
 * blanks.
 */
const kept = String.raw`[^\x{0}-\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200f}\x{2028}-\x{202f}\x{205f}\x{3000}]`

const blanks = [9, 10, 11, 12, 13, 28, 29, 30, 31, 32, 5760, 8192, 8193, 8194, 8195, 8196, 8197, 8198, 8200, 8201, 8202]
  .concat([8232, 8233, 8287, 12288])
  .map((code) => `chr(${code})`)
  .join('||')

/**
 * A trim for Character.isWhitespace. DuckDB prepares a given set of characters again for each text, which takes five
 * times as long as the rest. Therefore texts without blanks at the ends, and texts with only spaces there, are handled
 * before.
 */
function trimming(name: 'trim' | 'ltrim' | 'rtrim'): Macro {
  const sides = { trim: ['1', '-1'], ltrim: ['1'], rtrim: ['-1'] }[name]
  const plain = sides.map((end) => `s[${end}] BETWEEN '!' AND '~'`).join(' AND ')
  const padded = { trim: `^ *${kept}(?:.*${kept})? *$`, ltrim: `^ *${kept}`, rtrim: `${kept} *$` }[name]
  return macro(
    `q_${name}(s)`,
    `CASE WHEN ${plain} THEN s WHEN regexp_matches(s, '${padded}', 's') THEN ${name}(s) ELSE ${name}(s, ${blanks}) END`,
  )
}

/** Strings by code point; DuckDB's own functions handle ASCII. */
export const stringMacros: readonly Macro[] = [
  trimming('trim'),
  trimming('ltrim'),
  trimming('rtrim'),
  // Reads the text once: taking the n-th character directly would count n characters each time.
  macro('q_characters(s)', `regexp_extract_all(s, '.', 0, 's')`),
  // For a separator that is not constant: put before each element, and removed from the first.
  macro(
    'q_joined(l, s)',
    `
      CASE
        WHEN len(l) = 0 THEN ''
        ELSE substring(array_to_string(list_transform(l, lambda q8: s||q8), ''), length(s) + 1)
      END
    `,
  ),
  macro(
    'q_upper(s)',
    `
      CASE
        WHEN contains(s, 'ß') THEN array_to_string(list_transform(string_split(s, 'ß'), lambda q1: upper(q1)), 'ß')
        ELSE upper(s)
      END
    `,
  ),
  macro(
    'q_reverse(s)',
    `CASE WHEN strlen(s) = length(s) AND NOT contains(s, chr(13)) THEN reverse(s) ELSE u_reverse(s) END`,
  ),
  macro(
    'q_substr(s, a)',
    `
      CASE
        WHEN s IS NULL OR a IS NULL THEN NULL
        WHEN a = 0 OR a < -length(s) OR a > length(s) THEN ''
        ELSE substring(s, a)
      END
    `,
  ),
  macro(
    'q_substr3(s, a, n)',
    `
      CASE
        WHEN s IS NULL OR a IS NULL OR n IS NULL THEN NULL
        WHEN a = 0 OR n <= 0 OR a < -length(s) OR a > length(s) THEN ''
        ELSE substring(s, a, least(n, 4294967295))
      END
    `,
  ),
  macro(
    'q_substr_bin(s, a, n)',
    `
      CASE
        WHEN s IS NULL OR a IS NULL OR n IS NULL THEN NULL
        WHEN a = 0 OR n <= 0 OR a < -octet_length(s) OR a > octet_length(s) THEN CAST('' AS BLOB)
        ELSE array_slice(s, a, CASE WHEN a < 0 THEN least(a + octet_length(s) + 1, octet_length(s)) ELSE a END +
            least(n, octet_length(s)) - 1)
      END
    `,
  ),
  macro(
    'q_replace(s, f, t)',
    `
      CASE
        WHEN f = '' THEN t||array_to_string(list_transform(q_characters(s), lambda q1: q1||t), '')
        ELSE replace(s, f, t)
      END
    `,
  ),
  macro(
    'q_concat_ws(s, a)',
    `CASE WHEN s IS NOT NULL AND a IS NOT NULL THEN q_joined(list_filter(a, lambda q1: q1 IS NOT NULL), s) END`,
  ),
  macro(
    'q_split(s, d)',
    `
      CASE
        WHEN d = '' THEN u_raise('${bad}: The delimiter may not be the empty string')
        WHEN d IS NOT NULL THEN string_split(s, d)
      END
    `,
  ),
  // The first match of a pattern that does not match the empty text.
  macro(
    'q_rx_first(s, p, g)',
    `list_transform([regexp_extract(s, p, g)], lambda q1: CASE WHEN q1 <> '' THEN q1 END)[1]`,
  ),
  macro(
    'q_rx_position(s, p)',
    `
      CASE
        WHEN regexp_matches(s, p) THEN CAST(instr(s, regexp_extract(s, p)) AS INTEGER)
        WHEN s IS NOT NULL THEN CAST(-1 AS INTEGER)
      END
    `,
  ),
  // The regular expression for a LIKE pattern p with the escape e, made from its tokens: e with the next character,
  // plain text, and wildcards.
  macro(
    'q_like(p, e)',
    `
      CASE
        WHEN length(e) <> 1 THEN u_raise('${bad}: Escape string must be a single character')
        ELSE array_to_string(list_transform(regexp_extract_all(p, regexp_escape(e)||'.?|[^%_'||regexp_escape(e)||']+|[%_]', 0, 's'), lambda q1: CASE
          WHEN starts_with(q1, e) THEN CASE
            WHEN length(q1) = 2 AND right(q1, 1) IN ('%', '_', e) THEN regexp_escape(right(q1, 1))
            ELSE u_raise('${bad}: ${LIKE_ESCAPE}')
          END
          WHEN q1 = '%' THEN '.*'
          WHEN q1 = '_' THEN '.'
          ELSE regexp_escape(q1)
        END), '')
      END
    `,
  ),
  macro(
    'q_codepoint(s)',
    `CASE WHEN length(s) <> 1 THEN u_raise('${bad}: Input string must be a single character string') ELSE ord(s) END`,
  ),
  macro(
    'q_levenshtein(a, b)',
    `
      CASE
        WHEN strlen(a) = length(a) AND strlen(b) = length(b) AND strlen(a) * strlen(b) < 1000000 THEN levenshtein(a,
            b)
        WHEN CAST(length(a) AS BIGINT) * length(b) > 1000000 THEN
            u_raise('${bad}: The combined inputs size exceeded max Levenshtein distance size, code points m + n should be less than 1000000')
        ELSE u_levenshtein(a, b)
      END
    `,
  ),
  macro(
    'q_hamming(a, b)',
    `
      CASE
        WHEN length(a) <> length(b) THEN
            u_raise('${bad}: The input strings to hamming_distance function must have the same length')
        WHEN a = '' THEN 0
        WHEN strlen(a) = length(a) AND strlen(b) = length(b) THEN hamming(a, b)
        ELSE u_hamming(a, b)
      END
    `,
  ),
  // DuckDB leaves invalid escapes unchanged, and fails where Trino uses replacement characters.
  macro(
    'q_url_decode(s)',
    `
      CASE
        WHEN NOT contains(s, '%') THEN replace(s, '+', ' ')
        WHEN regexp_matches(s, '%(?:$|[^0-9a-fA-F]|.(?:$|[^0-9a-fA-F]))') THEN u_url_decode(s)
        ELSE coalesce(TRY(least(url_decode(replace(s, '+', ' ')))), u_url_decode(s))
      END
    `,
  ),
  macro(
    'q_from_hex(s)',
    `
      CASE
        WHEN strlen(s) % 2 = 1 THEN u_raise('${bad}: invalid input length '||strlen(s))
        ELSE coalesce(TRY(least(unhex(s))), CASE
          WHEN s IS NOT NULL THEN u_raise('${bad}: not a hexadecimal digit: "'||regexp_extract(s,
              '[^0-9A-Fa-f]')||'" = '||ord(regexp_extract(s, '[^0-9A-Fa-f]')))
        END)
      END
    `,
  ),
  // Bytes that are valid UTF-8 need no replacement.
  macro(
    'q_from_utf8(b, r)',
    `CASE WHEN length(r) <= 1 THEN coalesce(TRY(least(decode(b))), u_from_utf8(b, r)) ELSE u_from_utf8(b, r) END`,
  ),
  // DuckDB accepts a character behind padding.
  macro(
    'q_from_base64(s)',
    `
      coalesce(CASE
        WHEN NOT contains(s, '=') OR instr(s, '=') = strlen(s) OR instr(s, '=') = strlen(s) - 1 AND ends_with(s, '==') THEN
            TRY(least(from_base64(s)))
      END, u_from_base64(s))
    `,
  ),
  macro(
    'q_from_base64url(s)',
    `
      CASE
        WHEN regexp_full_match(s, '([\\w-]{4})*([\\w-]{2}==|[\\w-]{3}=)?') THEN from_base64(translate(s, '-_', '+/'))
        ELSE u_from_base64url(s)
      END
    `,
  ),
  macro('q_sized(x, n, m)', `CASE WHEN octet_length(x) <> n THEN u_raise('${bad}: '||m) ELSE x END`),
  macro(
    'q_to_base(x, r)',
    `
      CASE
        WHEN x IS NOT NULL AND r NOT BETWEEN 2 AND 36 THEN u_raise('${bad}: Radix must be between 2 and 36')
        WHEN x < 0 THEN '-'||lower(to_base(CAST(-CAST(x AS HUGEINT) AS BIGINT), CAST(r AS INTEGER)))
        ELSE lower(to_base(x, CAST(r AS INTEGER)))
      END
    `,
  ),
  macro(
    'q_listagg(s, strict)',
    `
      CASE
        WHEN strict AND strlen(s) > 1048576 THEN
            u_fail('EXCEEDED_FUNCTION_MEMORY_LIMIT: Concatenated string has the length in bytes larger than the maximum output length 1048576')
        ELSE s
      END
    `,
  ),
]
