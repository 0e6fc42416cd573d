import { code, literal, type Sql } from '../../../duckdb/text/sql.ts'
import { PARTIAL, scalar, type FunctionDefinition } from '../function-definition.ts'
import { stepsOf } from '../../../duckdb/scripts/json.ts'
import type { RenderContext } from '../rendering.ts'

/** Member names that have the same meaning in a path and in a pointer, both for objects and for arrays. */
const NAME = /^[\p{L}_][\p{L}\p{N}_ .-]*$/u
const INDEX = /^(?:0|[1-9]\d{0,8})$/

/** The JSON pointer of a constant path, in DuckDB's form; undefined if its meaning would differ. */
function pointerOf(path: unknown): string | undefined {
  const steps = typeof path === 'string' ? stepsOf(path) : undefined
  if (steps === undefined || steps.length === 0) return undefined
  return steps.every((step) => NAME.test(step) || INDEX.test(step))
    ? steps.map((step) => `/${step}`).join('')
    : undefined
}

/** Uses DuckDB if the path is constant, otherwise JavaScript. */
function atPath(known: Sql, general: Sql) {
  return (context: RenderContext): Sql => {
    const pointer = pointerOf(context.constant(1))
    return pointer === undefined
      ? context.fill`${general}($1, $2)`
      : context.fill`${known}($1, ${literal(pointer)}, $2)`
  }
}

function itemOf(known: Sql) {
  return (context: RenderContext): Sql => {
    const index = String(context.constant(1))
    return INDEX.test(index)
      ? context.fill`${known}($1, ${literal(`/${index}`)}, $2)`
      : context.fill`u_json_array_get($1, $2)`
  }
}

/** Functions that read a document. @param q the prefix of the macros that read a document of the input type */
function reading(input: 'varchar(x)' | 'json', q: 'q_json_' | 'q_json_canonical_'): readonly FunctionDefinition[] {
  const contains = (wanted: string, kind: string, written: string): FunctionDefinition =>
    scalar(
      `json_array_contains(${input}, ${wanted})`,
      'boolean',
      `${q}array_contains($1, '${kind}', ${written})`,
      PARTIAL,
    )
  return [
    scalar(`json_extract(${input}, JsonPath)`, 'json', atPath(code(`${q}at`), code('u_json_extract')), PARTIAL),
    scalar(
      `json_extract_scalar(${input}, JsonPath)`,
      input === 'json' ? 'varchar' : 'varchar(x)',
      atPath(code(`${q}scalar_at`), code('u_json_extract_scalar')),
      PARTIAL,
    ),
    scalar(`json_size(${input}, JsonPath)`, 'bigint', atPath(code(`${q}size_at`), code('u_json_size')), PARTIAL),
    scalar(`json_array_length(${input})`, 'bigint', `${q}array_length($1)`, PARTIAL),
    scalar(`json_array_get(${input}, bigint)`, 'json', itemOf(code(`${q}item`)), PARTIAL),
    contains('bigint', 'integer', 'CAST($2 AS VARCHAR), CAST($2 AS VARCHAR)'),
    contains('boolean', 'boolean', 'CAST($2 AS VARCHAR), CAST($2 AS VARCHAR)'),
    scalar(`json_array_contains(${input}, double)`, 'boolean', `${q}array_contains_double($1, $2)`, PARTIAL),
    // A text without escapes has the same form in JSON.
    contains(input === 'json' ? 'varchar(x)' : 'varchar(y)', 'text', `$2, '"'||$2||'"'`),
    scalar(`is_json_scalar(${input})`, 'boolean', `${q}is_scalar($1)`, PARTIAL),
  ]
}

/** Values of type json are canonical text; functions on varchar read the text as written. */
export const jsonFunctions: readonly FunctionDefinition[] = [
  scalar('json_parse(varchar(x))', 'json', 'q_json_parse($1)', PARTIAL),
  scalar('json_format(json)', 'varchar', '$1', PARTIAL),
  ...reading('varchar(x)', 'q_json_'),
  ...reading('json', 'q_json_canonical_'),
]
