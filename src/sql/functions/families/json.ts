import { PARTIAL, scalar, type FunctionDefinition } from '../function-definition.ts'

/** Values of type json are canonical text; functions on varchar read it as it stands. */
export const jsonFunctions: readonly FunctionDefinition[] = [
  scalar('json_parse(varchar(x))', 'json', 'u_json_parse($1)', PARTIAL),
  scalar('json_format(json)', 'varchar', '$1', PARTIAL),
  ...(['varchar(x)', 'json'] as const).flatMap((input) => [
    scalar(`json_extract(${input}, JsonPath)`, 'json', 'u_json_extract($1, $2)', PARTIAL),
    scalar(
      `json_extract_scalar(${input}, JsonPath)`,
      input === 'json' ? 'varchar' : 'varchar(x)',
      'u_json_extract_scalar($1, $2)',
      PARTIAL,
    ),
    scalar(`json_size(${input}, JsonPath)`, 'bigint', 'u_json_size($1, $2)', PARTIAL),
    scalar(`json_array_length(${input})`, 'bigint', 'u_json_array_length($1)', PARTIAL),
    scalar(`json_array_get(${input}, bigint)`, 'json', 'u_json_array_get($1, $2)', PARTIAL),
    scalar(
      `json_array_contains(${input}, bigint)`,
      'boolean',
      `u_json_array_contains($1, 'integer', CAST($2 AS VARCHAR))`,
      PARTIAL,
    ),
    scalar(
      `json_array_contains(${input}, boolean)`,
      'boolean',
      `u_json_array_contains($1, 'boolean', CAST($2 AS VARCHAR))`,
      PARTIAL,
    ),
    scalar(
      `json_array_contains(${input}, double)`,
      'boolean',
      `u_json_array_contains($1, 'double', q_java_double($2))`,
      PARTIAL,
    ),
    scalar(
      input === 'json' ? 'json_array_contains(json, varchar(x))' : 'json_array_contains(varchar(x), varchar(y))',
      'boolean',
      `u_json_array_contains($1, 'text', $2)`,
      PARTIAL,
    ),
    scalar(`is_json_scalar(${input})`, 'boolean', 'u_is_json_scalar($1)', PARTIAL),
  ]),
]
