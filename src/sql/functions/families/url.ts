import { varchar } from '../../types/sql-type.ts'
import { PARTIAL, scalar, type FunctionDefinition } from '../function-definition.ts'

/** URL functions with the behavior of java.net.URI: any illegal character makes all parts NULL. */
export const urlFunctions: readonly FunctionDefinition[] = [
  ...['protocol', 'host', 'path', 'query', 'fragment'].map((part) =>
    scalar(`url_extract_${part}(varchar(x))`, 'varchar(x)', `u_url_part($1, '${part}')`, PARTIAL),
  ),
  scalar('url_extract_port(varchar(x))', 'bigint', `CAST(u_url_part($1, 'port') AS BIGINT)`, PARTIAL),
  scalar('url_extract_parameter(varchar(x), varchar(y))', 'varchar(x)', 'u_url_parameter($1, $2)', PARTIAL),
  scalar(
    'url_encode(varchar(x))',
    ({ numbers }) => (numbers['x'] === undefined ? varchar() : varchar(Math.min(numbers['x'] * 12, 2147483647))),
    `replace(replace(replace(url_encode($1), '%20', '+'), '%2A', '*'), '~', '%7E')`,
    PARTIAL,
  ),
  scalar('url_decode(varchar(x))', 'varchar(x)', 'q_url_decode($1)', PARTIAL),
]
