import { integer, literal, sql, type Sql } from '../../../duckdb/text/sql.ts'
import { template, type Template } from '../../../duckdb/text/template.ts'
import { varchar } from '../../types/sql-type.ts'
import { bindName } from '../fill-template.ts'
import { GROWING, PARTIAL, scalar, type FunctionDefinition } from '../function-definition.ts'
import {
  LAST_GROUP,
  nativePattern,
  nativeReplacement,
  type NativePattern,
} from '../../../duckdb/regexp/native-pattern.ts'
import type { RenderContext } from '../rendering.ts'

/** Renders a call with DuckDB's own functions so that the result equals Joni's; undefined if this is impossible. */
type Native = (context: RenderContext, re2: Sql, pattern: NativePattern) => Sql | undefined

/**
 * Patterns follow Java (Joni). Patterns that RE2 reads alike run in DuckDB's own functions, all others in JavaScript.
 * Rows whose text could make a difference also run in JavaScript: a final line end before `$`, or non-ASCII text with
 * `(?i)` and `\b`.
 */
function routed(native: Native, javascript: Template): (context: RenderContext) => Sql {
  return (context) => {
    const general = context.fill`${javascript}`
    const constant = context.constant(1)
    if (typeof constant !== 'string') return general
    const found = nativePattern(constant)
    const fast = found && native(context, literal(found.re2), found)
    if (found === undefined || fast === undefined) return general
    if (found.guard === undefined) return fast
    return sql`CASE WHEN ${found.guard(context.value(0))} THEN ${fast} ELSE ${general} END`
  }
}

/**
 * Restricts a rendering to patterns that never match empty text: after an empty match, DuckDB continues differently.
 */
function ofText(native: Native): Native {
  return (context, re2, pattern) => (pattern.mayBeEmpty ? undefined : native(context, re2, pattern))
}

/** The number of the requested group, if the group has a text in each match. */
function steadyGroup(context: RenderContext, { groups }: NativePattern): number | undefined {
  if (context.args.length < 3) return 0
  const group = context.constant(2)
  if (typeof group !== 'number' || group < 0 || group > LAST_GROUP) return undefined
  return group === 0 || groups[group - 1]?.steady === true ? group : undefined
}

const extracted: Native = (context, re2, pattern) => {
  const group = steadyGroup(context, pattern)
  if (group === undefined) return undefined
  const mayBeEmpty = group === 0 ? pattern.mayBeEmpty : pattern.groups[group - 1]!.mayBeEmpty
  return mayBeEmpty
    ? sql`CASE WHEN regexp_matches(${context.value(0)}, ${re2}) THEN regexp_extract(${context.value(0)}, ${re2}, ${integer(group)}) END`
    : sql`q_rx_first(${context.value(0)}, ${re2}, ${integer(group)})`
}

const allExtracted = ofText((context, re2, pattern) => {
  const group = steadyGroup(context, pattern)
  return group === undefined ? undefined : sql`regexp_extract_all(${context.value(0)}, ${re2}, ${integer(group)})`
})

/** The first match is at the first position of its text, unless the pattern looks at the text around it. */
const firstPosition = ofText((context, re2, { looksAround }) =>
  looksAround ? undefined : sql`q_rx_position(${context.value(0)}, ${re2})`,
)

const replaced = ofText((context, re2, pattern) => {
  const replacement = context.args.length < 3 ? '' : context.constant(2)
  const native = typeof replacement === 'string' ? nativeReplacement(replacement, pattern) : undefined
  return native === undefined ? undefined : sql`regexp_replace(${context.value(0)}, ${re2}, ${literal(native)}, 'g')`
})

/** DuckDB searches the rest for the next match as if the text began there. */
const split = ofText((context, re2, { looksAround }) =>
  looksAround ? undefined : sql`regexp_split_to_array(${context.value(0)}, ${re2})`,
)

/** Each match is replaced by the lambda's result; the lambda receives the match's groups as an array. */
function replacedByLambda(context: RenderContext): Sql {
  const { names } = context
  const [index, gaps, groups] = [names.fresh(), names.fresh(), names.fresh()]
  const text = context.value(0)
  const pattern = context.value(1)
  const body = context.lambda(2).apply(sql`CAST(CAST(${groups}[${index}] AS JSON) AS VARCHAR[])`)
  const parts = sql`list_transform(range(1, len(${gaps}) + 1), lambda ${index}: ${gaps}[${index}] || CASE WHEN ${index} <= len(${groups}) THEN ${body} ELSE '' END)`
  // If the lambda returns NULL for a match, the whole result is NULL.
  const made = names.fresh()
  const joined = bindName(
    made,
    parts,
    sql`CASE WHEN list_position(${made}, NULL) IS NULL THEN array_to_string(${made}, '') END`,
  )
  const withGaps = sql`list_transform([u_rx_gaps(${text}, ${pattern})], lambda ${gaps}: ${joined})[1]`
  return sql`CASE WHEN ${text} IS NOT NULL AND ${pattern} IS NOT NULL THEN list_transform([u_rx_groups(${text}, ${pattern})], lambda ${groups}: ${withGaps})[1] END`
}

export const regexpFunctions: readonly FunctionDefinition[] = [
  scalar(
    'regexp_like(varchar(x), JoniRegExp)',
    'boolean',
    routed((context, re2) => sql`regexp_matches(${context.value(0)}, ${re2})`, template('u_rx_like($1, $2)')),
    PARTIAL,
  ),
  scalar(
    'regexp_extract(varchar(x), JoniRegExp)',
    'varchar(x)',
    routed(extracted, template('u_rx_extract($1, $2, 0)')),
    PARTIAL,
  ),
  scalar(
    'regexp_extract(varchar(x), JoniRegExp, bigint)',
    'varchar(x)',
    routed(extracted, template('u_rx_extract($1, $2, $3)')),
    PARTIAL,
  ),
  scalar(
    'regexp_extract_all(varchar(x), JoniRegExp)',
    'array(varchar(x))',
    routed(allExtracted, template('u_rx_extract_all($1, $2, 0)')),
    GROWING,
  ),
  scalar(
    'regexp_extract_all(varchar(x), JoniRegExp, bigint)',
    'array(varchar(x))',
    routed(allExtracted, template('u_rx_extract_all($1, $2, $3)')),
    GROWING,
  ),
  scalar(
    'regexp_count(varchar(x), JoniRegExp)',
    'bigint',
    routed(
      ofText((context, re2) => sql`CAST(len(regexp_extract_all(${context.value(0)}, ${re2})) AS BIGINT)`),
      template('u_rx_count($1, $2)'),
    ),
    PARTIAL,
  ),
  scalar(
    'regexp_position(varchar(x), JoniRegExp)',
    'integer',
    routed(firstPosition, template('CAST(u_rx_position($1, $2, 1, 1) AS INTEGER)')),
    PARTIAL,
  ),
  scalar(
    'regexp_position(varchar(x), JoniRegExp, integer)',
    'integer',
    'CAST(u_rx_position($1, $2, CAST($3 AS BIGINT), 1) AS INTEGER)',
    PARTIAL,
  ),
  scalar(
    'regexp_position(varchar(x), JoniRegExp, integer, integer)',
    'integer',
    'CAST(u_rx_position($1, $2, CAST($3 AS BIGINT), CAST($4 AS BIGINT)) AS INTEGER)',
    PARTIAL,
  ),
  scalar(
    'regexp_replace(varchar(x), JoniRegExp)',
    'varchar(x)',
    routed(replaced, template(`u_rx_replace($1, $2, '')`)),
    GROWING,
  ),
  scalar(
    'regexp_replace(varchar(x), JoniRegExp, varchar(y))',
    ({ numbers }) => {
      const [x, y] = [numbers['x'], numbers['y']]
      return x === undefined || y === undefined
        ? varchar()
        : varchar(Math.min(2147483647, x + Math.max(Math.floor((x * y) / 2), y) * (x + 1)))
    },
    routed(replaced, template('u_rx_replace($1, $2, $3)')),
    GROWING,
  ),
  scalar(
    'regexp_replace(varchar, JoniRegExp, function(array(varchar),varchar(x)))',
    'varchar',
    replacedByLambda,
    GROWING,
  ),
  scalar(
    'regexp_split(varchar(x), JoniRegExp)',
    'array(varchar(x))',
    routed(split, template('u_rx_split($1, $2)')),
    PARTIAL,
  ),
]
