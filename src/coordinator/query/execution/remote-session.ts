import type { RemoteStatement } from '../../clusters/relay/relay-port.ts'
import type { QuerySession } from '../stream/events.ts'

/**
 * The capabilities that go to the cluster. With others, its answers could contain addresses of the cluster's own store.
 */
const PASSED_CAPABILITIES = new Set(['PATH', 'PARAMETRIC_DATETIME', 'SESSION_AUTHORIZATION'])

/**
 * Makes the statement for a cluster: the text as the client sent it, and the client's session as headers of Trino. The
 * credentials of the client are not part of it.
 * @param user the user that the statement runs as at the cluster; undefined: the user of the gateway's credentials
 * @param traceparent makes the cluster's spans children of the span of the remote stage
 */
export function remoteStatement(
  sql: string,
  session: QuerySession,
  { user, traceparent }: { readonly user: string | undefined; readonly traceparent: string | undefined },
): RemoteStatement {
  const headers: Readonly<Record<string, string | undefined>> = {
    'x-trino-catalog': session.catalog,
    'x-trino-schema': session.schema,
    'x-trino-path': session.path,
    'x-trino-source': session.source,
    'x-trino-time-zone': session.timeZone,
    'x-trino-language': session.language,
    'x-trino-client-info': session.clientInfo,
    'x-trino-trace-token': session.traceToken,
    'x-trino-client-tags': joined(session.clientTags),
    'x-trino-client-capabilities': joined(session.capabilities.filter((name) => PASSED_CAPABILITIES.has(name))),
    'x-trino-session': pairs(session.properties),
    'x-trino-prepared-statement': pairs(session.preparedStatements, encodeURIComponent),
    'x-trino-resource-estimate': pairs(session.resourceEstimates),
    // Roles are those of the client's own user.
    'x-trino-role': user === undefined ? undefined : pairs(session.roles),
    traceparent,
  }
  const given = Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return { sql, user, headers: Object.fromEntries(given) }
}

function joined(texts: readonly string[]): string | undefined {
  return texts.length === 0 ? undefined : texts.join(',')
}

/** `name=value,…`, values form-encoded; undefined for none. */
function pairs(
  values: Readonly<Record<string, string>>,
  nameText: (name: string) => string = (name) => name,
): string | undefined {
  return joined(Object.entries(values).map(([name, value]) => `${nameText(name)}=${encodeURIComponent(value)}`))
}
