import { literal, sql, type Sql } from '../../text/sql.ts'
import { template, type Template } from '../../text/template.ts'
import { varchar } from '../../types/sql-type.ts'
import { bindName } from '../fill-template.ts'
import { GROWING, PARTIAL, scalar, type FunctionDefinition } from '../function-definition.ts'
import { nativePattern, nativeReplacement } from '../regexp/native-pattern.ts'
import type { RenderContext } from '../rendering.ts'

/**
 * Patterns are Java's (Joni). What RE2 reads alike goes to DuckDB's own functions, the rest to JavaScript; rows whose
 * text could make a difference (a final line end before `$`, other than ASCII with `(?i)` and `\b`) go there too.
 */
function routed(
  native: (context: RenderContext, pattern: Sql) => Sql | undefined,
  javascript: Template,
  needsNonEmpty: boolean,
): (context: RenderContext) => Sql {
  return (context) => {
    const general = context.fill`${javascript}`
    const constant = context.constant(1)
    if (typeof constant !== 'string') return general
    const found = nativePattern(constant)
    if (found === undefined || (needsNonEmpty && found.mayBeEmpty)) return general
    const fast = native(context, literal(found.re2))
    if (fast === undefined) return general
    if (found.guard === undefined) return fast
    return sql`CASE WHEN ${found.guard(context.value(0))} THEN ${fast} ELSE ${general} END`
  }
}

function replaced(context: RenderContext, pattern: Sql): Sql | undefined {
  const replacement = context.constant(2)
  if (typeof replacement !== 'string') return undefined
  const native = nativeReplacement(replacement, String(context.constant(1)))
  return native === undefined
    ? undefined
    : sql`regexp_replace(${context.value(0)}, ${pattern}, ${literal(native)}, 'g')`
}

/** The groups of each match become the lambda's array; its result takes the place of the match. */
function replacedByLambda(context: RenderContext): Sql {
  const { names } = context
  const [index, gaps, groups] = [names.fresh(), names.fresh(), names.fresh()]
  const text = context.value(0)
  const pattern = context.value(1)
  const body = context.lambda(2).apply(sql`CAST(CAST(${groups}[${index}] AS JSON) AS VARCHAR[])`)
  const parts = sql`list_transform(range(1, len(${gaps}) + 1), lambda ${index}: ${gaps}[${index}] || CASE WHEN ${index} <= len(${groups}) THEN ${body} ELSE '' END)`
  // NULL for a match makes all of it NULL.
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
    routed(
      (context, pattern) => sql`regexp_matches(${context.value(0)}, ${pattern})`,
      template('u_rx_like($1, $2)'),
      false,
    ),
    PARTIAL,
  ),
  scalar(
    'regexp_extract(varchar(x), JoniRegExp)',
    'varchar(x)',
    routed(
      (context, pattern) => sql`regexp_extract_all(${context.value(0)}, ${pattern})[1]`,
      template('u_rx_extract($1, $2, 0)'),
      false,
    ),
    PARTIAL,
  ),
  scalar('regexp_extract(varchar(x), JoniRegExp, bigint)', 'varchar(x)', 'u_rx_extract($1, $2, $3)', PARTIAL),
  scalar(
    'regexp_extract_all(varchar(x), JoniRegExp)',
    'array(varchar(x))',
    routed(
      (context, pattern) => sql`regexp_extract_all(${context.value(0)}, ${pattern})`,
      template('u_rx_extract_all($1, $2, 0)'),
      true,
    ),
    GROWING,
  ),
  scalar(
    'regexp_extract_all(varchar(x), JoniRegExp, bigint)',
    'array(varchar(x))',
    'u_rx_extract_all($1, $2, $3)',
    GROWING,
  ),
  scalar(
    'regexp_count(varchar(x), JoniRegExp)',
    'bigint',
    routed(
      (context, pattern) => sql`CAST(len(regexp_extract_all(${context.value(0)}, ${pattern})) AS BIGINT)`,
      template('u_rx_count($1, $2)'),
      true,
    ),
    PARTIAL,
  ),
  scalar('regexp_position(varchar(x), JoniRegExp)', 'integer', 'CAST(u_rx_position($1, $2, 1, 1) AS INTEGER)', PARTIAL),
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
    routed(
      (context, pattern) => sql`regexp_replace(${context.value(0)}, ${pattern}, '', 'g')`,
      template(`u_rx_replace($1, $2, '')`),
      true,
    ),
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
    routed(replaced, template('u_rx_replace($1, $2, $3)'), true),
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
    routed(
      (context, pattern) => sql`regexp_split_to_array(${context.value(0)}, ${pattern})`,
      template('u_rx_split($1, $2)'),
      true,
    ),
    PARTIAL,
  ),
]
