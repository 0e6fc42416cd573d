// Every function of the table over 100,000 rows in an engine's DuckDB, beside DuckDB's nearest one over the same column:
// CPU of this process, the better of two runs, and what preparing costs. usage: node bench/functions.mjs [ROWS [NAME …]]
import { DuckDBInstance } from '@duckdb/node-api'
import { languageSettings } from '../dist/execution/engine/sandbox.js'
import { functionFamilies, nameOf } from '../dist/sql/functions/function-table.js'
import registerAll from '../dist/duckdb/scripts/register.js'
import { resolveDefinition } from '../dist/sql/functions/resolve-function.js'
import { translateError } from '../dist/sql/functions/runtime-errors.js'
import { parseSignature } from '../dist/sql/functions/signature.js'
import { codeOfModule, plainName, toText } from '../dist/duckdb/text/sql.js'
import { duckdbTypeText } from '../dist/sql/types/duckdb-representation.js'
import { parseTypeText } from '../dist/sql/types/type-names.js'

const [rows = '100000', ...only] = process.argv.slice(2)

/** Columns by the type they are given for; all of them have NULLs. */
const columns = {
  boolean: `i % 3 = 0`,
  tinyint: `CAST(i % 50 + 1 AS TINYINT)`,
  smallint: `CAST(i % 1000 + 1 AS SMALLINT)`,
  integer: `CAST(i % 30 + 1 AS INTEGER)`,
  bigint: `i % 30 + 1`,
  real: `CAST((hash(i) % 10000) / 10000 AS FLOAT)`,
  double: `(hash(i) % 1000000) / 1000000`,
  decimal: `CAST((hash(i) % 1000000) / 100 AS DECIMAL(9,2))`,
  varchar: `'furiously special ' || hash(i) % 100000 || ' deposits'`,
  char: `'ab' || lpad(CAST(i % 100 AS VARCHAR), 2, '0')`,
  varbinary: `encode('special ' || i)`,
  json: `'[1,{"a":"x","b":' || i || '},3]'`,
  date: `DATE '1992-01-01' + CAST(i % 2500 AS INTEGER)`,
  time: `TIME '00:00:00' + to_milliseconds(i % 86400000)`,
  timestamp: `make_timestamp((hash(i) % 1700000000000)::BIGINT * 1000)`,
  'time with time zone': `{'t': TIME '00:00:00' + to_milliseconds(i % 86400000), 'o': CAST(60 AS INTEGER)}`,
  'timestamp with time zone': `{'t': make_timestamp((hash(i) % 1700000000000)::BIGINT * 1000), 'z': 'Europe/Berlin'}`,
  'interval day to second': `CAST(i AS BIGINT) * 1000`,
  'interval year to month': `CAST(i % 100 AS INTEGER)`,
  uuid: `CAST(md5(CAST(i AS VARCHAR)) AS UUID)`,
  ipaddress: `u_ip_parse('10.0.' || i % 256 || '.1')`,
  HyperLogLog: `{'b': CAST(12 AS INTEGER), 'd': false, 'c': [q_distinct_code(hash(i), 16)]}`,
  SetDigest: `MAP {q_distinct_code(hash(i), 16): CAST(1 AS BIGINT)}`,
  tdigest: `[{'v': CAST(i AS DOUBLE), 'w': CAST(1 AS DOUBLE)}]`,
  color: `CAST(i % 256 AS INTEGER)`,
}
/** What is given as literals where it stands for a format, a pattern, a path. */
const usual = { JsonPath: '$[1].a', JoniRegExp: '([0-9])[0-9]*', CodePoints: 'fs' }

const URL = `'https://www.example.com:8080/a/b.html?q=' || integer || '&r=x#top'`

/** Arguments where the usual ones say nothing: a number of a column, or a literal; and texts of their own. */
const own = {
  date_parse: [`strftime(timestamp, '%Y-%m-%d %H:%M:%S')`, lit('%Y-%m-%d %H:%i:%s')],
  parse_datetime: [`strftime(timestamp, '%Y-%m-%d %H:%M:%S')`, lit('yyyy-MM-dd HH:mm:ss')],
  date_format: [undefined, lit('%Y-%m-%d %H:%i')],
  format_datetime: [undefined, lit('yyyy-MM-dd HH:mm')],
  from_iso8601_timestamp: [`strftime(timestamp, '%Y-%m-%dT%H:%M:%S.%gZ')`],
  from_iso8601_timestamp_nanos: [`strftime(timestamp, '%Y-%m-%dT%H:%M:%S.%gZ')`],
  from_iso8601_date: ['CAST(date AS VARCHAR)'],
  date: ['CAST(date AS VARCHAR)'],
  to_date: ['CAST(date AS VARCHAR)', lit('yyyy-mm-dd')],
  to_timestamp: ['CAST(date AS VARCHAR)', lit('yyyy-mm-dd')],
  parse_duration: [`CAST(integer AS VARCHAR) || 'h'`],
  parse_data_size: [`CAST(integer AS VARCHAR) || 'MB'`],
  date_trunc: [lit('month')],
  date_add: [lit('day')],
  date_diff: [lit('day')],
  at_timezone: [undefined, lit('America/New_York')],
  with_timezone: [undefined, lit('Europe/Berlin')],
  from_unixtime: ['double * 1e9', lit('Europe/Berlin')],
  json_parse: ['json'],
  json_extract: ['json'],
  json_extract_scalar: ['json'],
  json_size: ['json', lit('$[1]')],
  json_array_length: ['json'],
  json_array_get: ['json', lit(1)],
  json_array_contains: ['json'],
  is_json_scalar: ['json'],
  regexp_replace: [undefined, undefined, lit('x')],
  array_join: [undefined, lit(',')],
  concat_ws: [lit(',')],
  split: [undefined, lit(' ')],
  split_part: [undefined, lit(' '), lit(2)],
  split_to_map: [`'a=1,b=' || integer`, lit(','), lit('=')],
  split_to_multimap: [`'a=1,b=' || integer`, lit(','), lit('=')],
  lpad: [undefined, lit(40), lit('x')],
  rpad: [undefined, lit(40), lit('x')],
  substr: [undefined, lit(3), lit(5)],
  substring: [undefined, lit(3), lit(5)],
  replace: [undefined, lit('special'), lit('x')],
  strpos: [undefined, lit('dep')],
  starts_with: [undefined, lit('fur')],
  translate: [undefined, lit('abc'), lit('xyz')],
  codepoint: ['left(varchar, 1)'],
  levenshtein_distance: ['left(varchar, 12)', 'char'],
  hamming_distance: ['left(varchar, 12)', `right(varchar, 12)`],
  url_extract_protocol: [URL],
  url_extract_host: [URL],
  url_extract_port: [URL],
  url_extract_path: [URL],
  url_extract_query: [URL],
  url_extract_fragment: [URL],
  url_extract_parameter: [URL, lit('q')],
  url_decode: ['url_encode(varchar)'],
  luhn_check: ['CAST(integer AS VARCHAR)'],
  from_hex: ['hex(varchar)'],
  from_base64: ['to_base64(varbinary)'],
  from_base64url: ['to_base64(varbinary)'],
  from_base32: ['u_to_base32(varbinary)'],
  from_base: ['CAST(integer AS VARCHAR)', lit(10)],
  to_base: [undefined, lit(16)],
  normalize: [undefined, lit('NFC')],
  approx_percentile: [undefined, lit(1), lit(0.5)],
  sequence: [lit(1), lit(5)],
  repeat: [undefined, lit(3)],
  bitwise_left_shift: [undefined, lit(2)],
  bitwise_right_shift: [undefined, lit(2)],
  bitwise_right_shift_arithmetic: [undefined, lit(2)],
  format: [lit('%s %s')],
  approx_distinct: [undefined, lit(0.1)],
  numeric_histogram: [lit(5)],
  approx_most_frequent: [lit(5), undefined, lit(100)],
  lag: [undefined, lit(1)],
  lead: [undefined, lit(1)],
  nth_value: [undefined, lit(2)],
  ntile: [lit(5)],
  trim_array: [undefined, lit(1)],
  combinations: [undefined, lit(2)],
  random: [lit(1), lit(50)],
  rand: [lit(1), lit(50)],
  to_char: [undefined, lit('yyyy-mm-dd')],
  contains: [lit('10.0.0.0/8')],
}
function lit(constant) {
  return { constant }
}

/** DuckDB's nearest: of the arguments as SQL. What is not here is beside reading its first argument. */
const nearest = {
  format: (pattern, a, b) => `printf('%d %d', ${a}, ${b})`,
  date_parse: (x) => `strptime(${x}, '%Y-%m-%d %H:%M:%S')`,
  parse_datetime: (x) => `strptime(${x}, '%Y-%m-%d %H:%M:%S')`,
  date_format: (x) => `strftime(${moment(x)}, '%Y-%m-%d %H:%M')`,
  format_datetime: (x) => `strftime(${moment(x)}, '%Y-%m-%d %H:%M')`,
  from_iso8601_timestamp: (x) => `CAST(${x} AS TIMESTAMPTZ)`,
  from_iso8601_date: (x) => `CAST(${x} AS DATE)`,
  date: (x) => `CAST(${moment(x)} AS DATE)`,
  date_trunc: (unit, x) => `date_trunc('month', ${moment(x)})`,
  date_add: (unit, n, x) => `${moment(x)} + to_days(CAST(${n} AS INTEGER))`,
  date_diff: (unit, a, b) => `date_diff('day', ${moment(a)}, ${moment(b)})`,
  with_timezone: (x) => `timezone('Europe/Berlin', ${x})`,
  json_parse: (x) => `CAST(${x} AS JSON)`,
  json_extract: (x) => `json_extract(${x}, '$[1].a')`,
  json_extract_scalar: (x) => `json_extract_string(${x}, '$[1].a')`,
  json_size: (x) => `json_array_length(${x}, '$[1]')`,
  json_array_length: (x) => `json_array_length(${x})`,
  json_array_get: (x) => `json_extract(${x}, '$[1]')`,
  regexp_like: (x) => `regexp_matches(${x}, '[0-9]+')`,
  regexp_extract: (x) => `regexp_extract(${x}, '[0-9]+')`,
  regexp_extract_all: (x) => `regexp_extract_all(${x}, '[0-9]+')`,
  regexp_count: (x) => `len(regexp_extract_all(${x}, '[0-9]+'))`,
  regexp_replace: (x) => `regexp_replace(${x}, '[0-9]+', 'x', 'g')`,
  regexp_split: (x) => `regexp_split_to_array(${x}, '[0-9]+')`,
  regexp_position: (x) => `instr(${x}, regexp_extract(${x}, '[0-9]+'))`,
  approx_percentile: (x) => `approx_quantile(${x}, 0.5)`,
  approx_distinct: (x) => `approx_count_distinct(${x})`,
  approx_set: (x) => `approx_count_distinct(${x})`,
  make_set_digest: (x) => `approx_count_distinct(${x})`,
  levenshtein_distance: (a, b) => `levenshtein(${a}, ${b})`,
  hamming_distance: (a, b) => `hamming(${a}, ${b})`,
  codepoint: (x) => `unicode(${x})`,
  strpos: (a, b) => `instr(${a}, ${b})`,
  split: (a, b) => `string_split(${a}, ${b})`,
  to_hex: (x) => `hex(${x})`,
  from_hex: (x) => `unhex(${x})`,
  url_decode: (x) => `url_decode(${x})`,
  checksum: (x) => `bit_xor(hash(${x}))`,
  map_agg: (k, v) => `map_from_entries(list({'k': ${k}, 'v': ${v}}))`,
  array_sort: (x) => `list_sort(${x})`,
  array_distinct: (x) => `list_distinct(${x})`,
  contains: (x, y) => `list_contains(${x}, ${y})`,
  slice: (x, a, b) => `list_slice(${x}, ${a}, ${b})`,
  transform: (x) => `list_transform(${x}, lambda y: y)`,
  filter: (x) => `list_filter(${x}, lambda y: true)`,
}
function moment(x) {
  return x.includes('zone"') ? `timezone('Europe/Berlin', CAST(${x}.t AS TIMESTAMPTZ))` : x
}

const instance = await DuckDBInstance.create(':memory:', {
  threads: '2',
  preserve_insertion_order: 'false',
  max_expression_depth: '1000',
})
const connection = await instance.connect()
for (const setting of languageSettings) await connection.run(setting)
await registerAll(connection)
const list = Object.entries(columns).map(([name, sql]) => `CASE WHEN i % 1000 <> 999 THEN ${sql} END AS "${name}"`)
await connection.run(`CREATE TABLE plain AS SELECT i % 10 AS "$g", ${list.join(', ')} FROM range(${Number(rows)}) r(i)`)
// Columns too, or what makes the texts would be calculated each time that a rendering names its argument.
const texts = [...new Set(Object.values(own).flat())].filter((argument) => typeof argument === 'string')
await connection.run(
  `CREATE TABLE t AS SELECT *, ${texts.map((text, i) => `${text} AS own${i}`).join(', ')} FROM plain`,
)
const known = new Set(
  (await connection.runAndReadAll('SELECT DISTINCT function_name FROM duckdb_functions() WHERE internal'))
    .getRows()
    .flat(),
)

const cpu = (since) => {
  const { user, system } = process.cpuUsage(since)
  return (user + system) / 1000
}
async function measured(select) {
  let best = Infinity
  for (let run = 0; run < 2; run++) {
    const since = process.cpuUsage()
    await connection.runAndReadAll(select)
    best = Math.min(best, cpu(since))
  }
  return best
}
async function prepared(select) {
  let best = Infinity
  for (let run = 0; run < 2; run++) {
    const since = process.cpuUsage()
    ;(await connection.prepare(select)).destroySync()
    best = Math.min(best, cpu(since))
  }
  return best
}

/** A value of the type made of the columns. */
function valueOf(type) {
  switch (type.kind) {
    case 'array':
      return `[${valueOf(type.element)}, ${valueOf(type.element)}]`
    case 'map':
      return `MAP {${type.key.kind === 'bigint' ? '"$g"' : `CAST("$g" AS VARCHAR)`}: ${valueOf(type.value)}}`
    case 'row':
      return `{${type.fields.map((field, i) => `'f${i}': ${valueOf(field.type)}`).join(', ')}}`
    case 'qdigest':
      return `[{'v': ${valueOf(type.element)}, 'w': CAST(1 AS DOUBLE)}]`
    default:
      return columns[type.kind] === undefined ? `'${usual[type.kind] ?? 'x'}'` : `"${type.kind}"`
  }
}

/** The type a parameter is called with; variables stand for bigint. */
function typeOf(pattern) {
  switch (pattern.kind) {
    case 'variable':
    case 'any':
      return parseTypeText('bigint')
    case 'plain':
      return pattern.type
    case 'sized':
      if (pattern.base === 'decimal') return parseTypeText('decimal(9,2)')
      if (pattern.base === 'varchar') return parseTypeText('varchar(60)')
      return parseTypeText(pattern.base === 'char' ? 'char(4)' : pattern.base.replace(/^(timestamp|time)/, '$1(3)'))
    case 'map':
      return { kind: 'map', key: typeOf(pattern.key), value: typeOf(pattern.value) }
    case 'row':
      return { kind: 'row', fields: pattern.fields.map((field) => ({ name: undefined, type: typeOf(field) })) }
    default:
      return { kind: pattern.kind, element: typeOf(pattern.element) }
  }
}

function quoted(constant, duckdb) {
  return typeof constant === 'number' ? `CAST(${constant} AS ${duckdb})` : `'${constant}'`
}

function suits(constant, kind) {
  if (typeof constant === 'string') return kind === 'varchar'
  return typeof constant === 'number' && ['bigint', 'integer', 'smallint', 'tinyint', 'double'].includes(kind)
}

function callOf(definition) {
  const { parameters } = parseSignature(definition.signature)
  const asked = parameters.map((pattern) =>
    pattern.kind === 'function'
      ? { kind: 'lambda', parameterCount: pattern.parameters.length, bodyType: () => typeOf(pattern.result) }
      : { kind: 'value', type: typeOf(pattern) },
  )
  const resolved = resolveDefinition(definition, asked)
  if (resolved === undefined) throw new Error('does not resolve')
  const given = []
  const args = parameters.map((pattern, i) => {
    if (pattern.kind === 'function') {
      const body = codeOfModule(
        valueOf(typeOf(pattern.result))
          .replaceAll(/"bigint"/g, 'CAST(1 AS BIGINT)')
          .replaceAll('"boolean"', 'true'),
      )
      return { kind: 'lambda', apply: () => body }
    }
    const written = own[nameOf(definition)]?.[i]
    const type = resolved.argumentTypes[i]
    const constant = usual[type.kind] ?? (suits(written?.constant, type.kind) ? written.constant : undefined)
    const isText = ['varchar', 'json'].includes(type.kind)
    const text =
      constant !== undefined
        ? quoted(constant, duckdbTypeText(type))
        : typeof written === 'string' && (isText || type.kind === 'double')
          ? `own${texts.indexOf(written)}`
          : valueOf(type)
    given.push(text)
    return { kind: 'value', sql: codeOfModule(text), ...(constant === undefined ? {} : { constant }) }
  })
  let next = 0
  const call = resolved.render({
    args,
    session: { timeZone: 'UTC', startTimeMillis: Date.now(), user: 'bench' },
    names: { fresh: () => plainName(`v${next++}`) },
    ...(definition.kind === 'window' ? { clauses: { over: codeOfModule('PARTITION BY "$g" ORDER BY "bigint"') } } : {}),
  })
  return { sql: toText(call), given }
}

function selectOf(kind, sql) {
  // What may not be folded to a constant must be calculated: the columns have NULLs.
  return kind === 'aggregate'
    ? `SELECT count(v) FROM (SELECT ${sql} AS v FROM t GROUP BY "$g")`
    : `SELECT count(v) FROM (SELECT ${sql} AS v FROM t)`
}

const shown = []
const failed = []
for (const definition of Object.values(functionFamilies()).flat()) {
  const name = nameOf(definition)
  if (only.length > 0 && !only.includes(name)) continue
  try {
    const { sql, given } = callOf(definition)
    const select = selectOf(definition.kind, sql)
    const prepare = await prepared(select)
    const ours = await measured(select)
    let plain = nearest[name]?.(...given) ?? (known.has(name) ? `${name}(${given.join(', ')})` : undefined)
    let beside
    try {
      beside = plain === undefined ? undefined : await measured(selectOf(definition.kind, plain))
    } catch {
      plain = undefined
    }
    beside ??= await measured(`SELECT count(v) FROM (SELECT ${given[0] ?? '1'} AS v FROM t)`)
    shown.push({ signature: definition.signature, ours, beside, prepare, plain: plain ?? 'reading alone' })
  } catch (error) {
    failed.push(`${definition.signature}: ${describe(error)}`)
  }
}

function describe(error) {
  const [first = ''] = translateError(String(error?.message ?? error)).message.split('\n')
  return first.slice(0, 100)
}

const line = ({ signature, ours, beside, prepare, plain }) =>
  `${signature.slice(0, 58).padEnd(58)} ${ours.toFixed(0).padStart(6)} ms, DuckDB ${beside.toFixed(0).padStart(4)} ms, ` +
  `${(ours / Math.max(beside, 1)).toFixed(1).padStart(6)} ×, prepared in ${prepare.toFixed(1).padStart(5)} ms  ${plain.slice(0, 60)}`
console.log(`CPU over ${rows} rows; ${shown.length} overloads, ${failed.length} that these columns are no arguments of`)
for (const each of shown) console.log(line(each))
console.log('\nnot measured:')
for (const each of failed) console.log(`  ${each}`)
console.log('\nthe slowest ten:')
for (const each of shown.toSorted((a, b) => b.ours - a.ours).slice(0, 10)) console.log(line(each))
console.log('\nprepared the slowest:')
for (const each of shown.toSorted((a, b) => b.prepare - a.prepare).slice(0, 5)) console.log(line(each))
connection.closeSync()
instance.closeSync()
