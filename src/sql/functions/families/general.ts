import { code, integer, joined, literal, sql, type Sql } from '../../../duckdb/text/sql.ts'
import { EngineError } from '../../../shared/engine-error.ts'
import { version } from '../../../shared/version.ts'
import { isFine, isTypedNull, structOf, typedNull } from '../../types/duckdb-representation.ts'
import { varchar, isFloating, VARCHAR, type SqlType } from '../../types/sql-type.ts'
import { typeName } from '../../types/type-text.ts'
import { textOf } from '../casts.ts'
import { comparisonKey, isNested, needsComparisonKey } from '../comparison.ts'
import { nestedExtreme } from '../extremes.ts'
import { bindName } from '../fill-template.ts'
import { GROWING, PARTIAL, TOTAL, named, scalar, type FunctionDefinition } from '../function-definition.ts'
import { constantFormat } from '../format-constant.ts'
import type { RenderContext } from '../rendering.ts'

/** Greatest or least value: NULL if any value is NULL; NaN only if all values are NaN. */
function extreme(context: RenderContext, name: 'greatest' | 'least'): Sql {
  const values = context.args.map((_, i) => context.value(i))
  const type = context.types[0]!
  const which = name === 'greatest' ? 'max' : 'min'
  if (isFloating(type)) return sql`${code(`q_array_${which}_floating`)}([${joined(values, ', ')}])`
  if (isNested(type)) {
    const all = context.names.fresh()
    return bindName(all, sql`[${joined(values, ', ')}]`, nestedExtreme(type, all, which, context.names))
  }
  const anyNull = joined(
    values.map((value) => sql`${value} IS NULL`),
    ' OR ',
  )
  if (!needsComparisonKey(type))
    return sql`CASE WHEN ${anyNull} THEN NULL ELSE ${code(name)}(${joined(values, ', ')}) END`
  // The first of equal values wins.
  const position = (i: number): Sql => integer(name === 'greatest' ? -i : i)
  const pairs = values.map((value, i) =>
    structOf({ k: comparisonKey(type, value, context.names), i: position(i), v: value }),
  )
  return sql`CASE WHEN ${anyNull} THEN NULL ELSE (list_sort([${joined(pairs, ', ')}], ${literal(name === 'greatest' ? 'DESC' : 'ASC')})[1]).v END`
}

/** `format`: passes each value to `u_format` as JSON, with a kind that decides which conversions it accepts. */
function formatted(context: RenderContext): Sql {
  const values = context.args.slice(1).map((_, i) => {
    const [x, type] = [context.value(i + 1), context.types[i + 1]!]
    return { x, type, held: structOf({ k: literal(formatKind(type)), v: formatValue(x, type, context) }) }
  })
  const generally = (pattern: Sql, held: readonly Sql[]): Sql =>
    sql`u_format(${pattern}, CAST(to_json([${joined(held, ', ')}]) AS VARCHAR))`
  const pattern = context.constant(0)
  const given = values.map(({ x, type, held }) => ({
    x,
    type,
    generally: (specifier: string) => generally(literal(specifier), [held]),
  }))
  const known = typeof pattern === 'string' ? constantFormat(pattern, given) : undefined
  return (
    known ??
    generally(
      context.value(0),
      values.map(({ held }) => held),
    )
  )
}

function formatKind(type: SqlType): string {
  switch (type.kind) {
    case 'array':
    case 'map':
    case 'row':
    case 'varbinary':
      throw new EngineError('NOT_SUPPORTED', `Type not supported for formatting: ${typeName(type)}`)
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
      return 'integer'
    default:
      return type.kind
  }
}

/** Times in the form that `u_format` reads: local time; zones with their offset from UTC in seconds. */
function formatValue(x: Sql, type: SqlType, context: RenderContext): Sql {
  if (isTypedNull(x)) return typedNull(VARCHAR)
  switch (type.kind) {
    case 'real':
    case 'double':
      return sql`${code(`q_java_${type.kind}`)}(${x})`
    case 'json':
      return x
    case 'date':
      return sql`q_wire_date(${x})`
    case 'timestamp with time zone': {
      const local = isFine(type)
        ? sql`q_text_timestamp_fine(${structOf({ t: sql`q_local(${x}.t, ${x}.z)`, p: sql`${x}.p` })}, ${integer(type.precision)})`
        : sql`q_text_timestamp(q_local(${x}.t, ${x}.z), ${integer(type.precision)})`
      return sql`${local}||'|'||(epoch_us(q_off(${x}.t, ${x}.z)) // 1000000)||'|'||${x}.z`
    }
    default:
      return textOf(x, type, context)
  }
}

export const generalFunctions: readonly FunctionDefinition[] = [
  ...named(['greatest', 'least'], (name) =>
    scalar(
      `${name}(E, E...) where E orderable`,
      'E',
      (context) => extreme(context, name as 'greatest' | 'least'),
      PARTIAL,
    ),
  ),
  scalar(
    'typeof(T)',
    'varchar',
    (context) => {
      const name = literal(typeName(context.types[0]!))
      // The argument is evaluated, since it may fail.
      return context.fill`CASE WHEN $1 IS NULL THEN ${name} ELSE ${name} END`
    },
    PARTIAL,
    { calledOnNull: true },
  ),
  scalar('format(varchar, any, any...)', 'varchar', formatted, GROWING, { calledOnNull: true }),
  scalar('uuid()', 'uuid', 'uuid()', PARTIAL, { deterministic: false }),
  scalar('format_number(bigint)', 'varchar', 't_fnum($1)', PARTIAL),
  scalar('format_number(double)', 'varchar', 't_fnum(t_trunc($1))', PARTIAL),
  scalar(
    'parse_data_size(varchar(x))',
    'decimal(38,0)',
    `CASE WHEN $1 LIKE '.%' THEN t_pds('0'||$1) ELSE t_pds($1) END`,
    PARTIAL,
  ),
  scalar(
    'parse_presto_data_size(varchar(x))',
    'decimal(38,0)',
    `CASE WHEN $1 LIKE '.%' THEN t_pds('0'||$1) ELSE t_pds($1) END`,
    PARTIAL,
  ),
  scalar('contains(varchar, ipaddress)', 'boolean', 'u_cidr_contains($1, $2)', PARTIAL),
  scalar(
    'current_groups()',
    'array(varchar)',
    ({ session }) => sql`CAST([${joined(session.groups.map(literal), ', ')}] AS VARCHAR[])`,
    PARTIAL,
  ),
  scalar('version()', 'varchar', () => literal(version), TOTAL),
  scalar('current_user()', 'varchar', (context) => literal(context.session.user), PARTIAL, { hidden: true }),
  scalar('current_catalog()', 'varchar', (context) => nameOrNull(context.session.catalog), PARTIAL, { hidden: true }),
  scalar('current_schema()', 'varchar', (context) => nameOrNull(context.session.schema), PARTIAL, { hidden: true }),
  // A color is held as an integer: rgb, or negative for a system color.
  scalar('color(varchar(x))', 'color', 'CAST(u_color($1) AS INTEGER)', PARTIAL),
  scalar('rgb(bigint, bigint, bigint)', 'color', 'CAST(u_rgb($1, $2, $3) AS INTEGER)', PARTIAL),
  scalar(
    'color(double, color, color)',
    'color',
    'CAST(u_color_between($1, CAST($2 AS BIGINT), CAST($3 AS BIGINT)) AS INTEGER)',
    PARTIAL,
  ),
  scalar(
    'color(double, double, double, color, color)',
    'color',
    'CAST(u_color_between(($1 - $2) / ($3 - $2), CAST($4 AS BIGINT), CAST($5 AS BIGINT)) AS INTEGER)',
    PARTIAL,
  ),
  scalar(
    'render(boolean)',
    'varchar(16)',
    `CASE WHEN $1 THEN u_render('✓', -3) WHEN NOT $1 THEN u_render('✗', -2) END`,
    PARTIAL,
  ),
  scalar('render(bigint, color)', 'varchar(35)', 'u_render(CAST($1 AS VARCHAR), CAST($2 AS BIGINT))', PARTIAL),
  scalar('render(double, color)', 'varchar(41)', 'u_render(q_java_double($1), CAST($2 AS BIGINT))', PARTIAL),
  scalar(
    'render(varchar(x), color)',
    ({ numbers }) => varchar(numbers['x'] === undefined ? undefined : numbers['x'] + 15),
    'u_render($1, CAST($2 AS BIGINT))',
    PARTIAL,
  ),
  scalar('bar(double, bigint)', 'varchar', 'u_bar($1, $2, 16711680, 65280)', PARTIAL),
  scalar(
    'bar(double, bigint, color, color)',
    'varchar',
    'u_bar($1, $2, CAST($3 AS BIGINT), CAST($4 AS BIGINT))',
    PARTIAL,
  ),
]

function nameOrNull(name: string | undefined): Sql {
  return name === undefined ? typedNull(VARCHAR) : literal(name)
}
