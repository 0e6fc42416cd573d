import { macros } from './engine-setup.ts'

/**
 * The functions that rendered statements may call: an engine refuses any other name before a parenthesis. A rendering
 * that calls another function of DuckDB needs an entry here; calls inside macros do not. A listed function must read
 * nothing but its arguments, and have no side effects. The list is written by hand, not derived from the function
 * table: a wall that follows the renderings would protect nothing.
 */
const builtIn = (
  'abs acos any_value arg_max arg_max_null arg_min arg_min_null array_to_string asin atan atan2 avg bit_and bit_or ' +
  'bit_xor bool_and bool_or cardinality cbrt ceil chr coalesce concat concat_ws contains corr cos cosh count ' +
  'covar_pop covar_samp cume_dist date_diff date_sub date_trunc datediff day dayofyear decode degrees dense_rank ' +
  'encode ends_with epoch_us exp first_value flatten floor from_hex greatest grouping hash hex histogram hour instr ' +
  'isfinite isinf isnan isodow isoyear json_array json_extract_string json_transform kurtosis lag last_day last_value lead least ' +
  'left len length list list_append list_concat list_distinct list_extract list_filter list_intersect list_max list_min ' +
  'list_position list_prepend list_reduce list_reverse list_slice list_sort list_transform list_zip lower lpad ' +
  'ltrim make_timestamp map map_concat map_contains map_entries map_from_entries map_keys map_values max md5 ' +
  'millisecond min minute month nfc_normalize nth_value ntile octet_length percent_rank pi printf quarter radians ' +
  'random range rank regexp_escape regexp_extract regexp_extract_all regexp_full_match regexp_matches regexp_replace ' +
  'regexp_split_to_array regr_intercept regr_slope replace right round row_number rpad rtrim second sha1 sha256 ' +
  'sign sin sinh skewness split_part sqrt starts_with stddev_pop stddev_samp strftime string_agg strlen ' +
  'struct_extract substr sum tan tanh to_base64 to_days to_json to_microseconds to_milliseconds to_minutes ' +
  'to_months translate trim trunc try unhex unnest url_encode uuid var_pop var_samp week xor year'
).split(' ')

function nameOf(statement: string): string {
  return /MACRO (\w+)\(/.exec(statement)![1]!.toLowerCase()
}

/** Every name before a parenthesis in a macro's body, lower case. */
function namesIn(statement: string): readonly string[] {
  const calls = statement.slice(statement.indexOf(' AS ')).matchAll(/(\w+)\(/g)
  return [...new Set([...calls].map(([, name]) => name!.toLowerCase()))]
}

const named = new Map(macros.map((statement) => [nameOf(statement), namesIn(statement)]))

/** These functions end their statement, or a row of its TRY: they do not block a thread for long. */
const RAISING: ReadonlySet<string> = new Set(['j_raise', 'j_nothing'])

/** Macros that call a calculating function in JavaScript, directly or through other macros. */
function scriptedMacros(): ReadonlySet<string> {
  const scripted = new Set<string>()
  for (let before = -1; before < scripted.size;) {
    before = scripted.size
    for (const [macro, names] of named) {
      if (names.some((name) => (name.startsWith('j_') && !RAISING.has(name)) || scripted.has(name))) scripted.add(macro)
    }
  }
  return scripted
}

/** Names are lower case, as DuckDB folds names. */
export const engineVocabulary = {
  functions: new Set([...builtIn, ...named.keys()].map((name) => name.toLowerCase())) as ReadonlySet<string>,
  tableFunctions: new Set(['generate_series', 'range']) as ReadonlySet<string>,
  scripted: scriptedMacros(),
  macros: new Map(
    macros.map((statement) => {
      const name = nameOf(statement)
      return [name, { statement, calls: named.get(name)!.filter((called) => named.has(called)) }]
    }),
  ),
}
