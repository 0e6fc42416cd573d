import type { TablePanel } from './panel.ts'

/*
 * Rows of the read models: schema `m`, which rebuilds switch. `$__timeFilter` and `sqlstring`, which quotes a text, are Grafana's.
 */

/** The most rows of a table of a dashboard. */
export const ROWS = 50

const columns = `created_at, query_id, user_name, source, state, elapsed_ms, queued_ms, cpu_ms, peak_memory_bytes,
  output_rows, left(sql_text, 120) as sql, trace_id`

const units = { elapsed_ms: 'ms', queued_ms: 'ms', cpu_ms: 'ms', peak_memory_bytes: 'bytes' } as const

export const slowest: TablePanel = {
  kind: 'table',
  title: 'Slowest statements',
  description: 'Slowest statements in the time shown. The id links to the statement, the trace to its timeline.',
  sql: `select ${columns}
from m.queries where $__timeFilter(created_at)
order by elapsed_ms desc nulls last limit ${ROWS}`,
  units,
  leadsTo: ['query', 'trace'],
}

export const latestFailures: TablePanel = {
  kind: 'table',
  title: 'Latest failures',
  description: 'Statements that failed last, with their errors.',
  sql: `select ended_at, error_name, left(error_message, 120) as error, ${columns}
from m.queries where $__timeFilter(ended_at) and state = 'FAILED'
order by ended_at desc limit ${ROWS}`,
  units,
  leadsTo: ['query', 'trace'],
}

export const refusals: TablePanel = {
  kind: 'table',
  title: 'Denied and refused',
  description: 'Refused log-ins and denied actions, by user and minute.',
  sql: `select at, kind, user_name, count, action, object, remote_address, query_id
from m.audit_log where $__timeFilter(at) and kind in ('AuthenticationFailed', 'AccessDenied')
order by at desc limit ${ROWS}`,
  leadsTo: ['query'],
}

export const administratorsActs: TablePanel = {
  kind: 'table',
  title: 'Administrative actions',
  description:
    'Loaded and refused files (access rules and others), certificates and keys of tokens; killed and forgotten queries; drained workers; deleted epochs of workers; rebuilds; starts and ends of coordinators. Before and after are digests of files, fingerprints of certificates, or numbers of keys, rules and events.',
  sql: `select at, kind, user_name as by, remote_address, action, coalesce(query_id, details->>'stream', object) as what,
  case jsonb_typeof(details->'before') when 'array' then jsonb_array_length(details->'before')::text
    else left(details->>'before', 12) end as before,
  coalesce(left(details->>'digest', 12), left(details->>'fingerprint', 12), left(details->>'inForce', 12), details->>'events', details->>'after',
    jsonb_array_length(details->'keys')::text) as after,
  details->>'entriesBefore' as rules_before, details->>'entries' as rules_after,
  coalesce(details->>'reason', details->>'occasion', details->>'how') as how, query_id
from m.audit_log where $__timeFilter(at)
  and kind in ('FileTaken', 'FileRefused', 'CertificateTaken', 'TokenKeysTaken', 'QueryKilled', 'DataForgotten',
    'ProjectionRebuilt', 'ConfigurationLoaded', 'EpochStarted', 'EpochEnded', 'EpochsForgotten', 'NodeDrainAsked')
order by at desc limit ${ROWS}`,
  leadsTo: ['query'],
}

export const openDeadLetters: TablePanel = {
  kind: 'table',
  title: 'Open dead letters',
  description: 'Events that could not be projected. Fix the cause, then run `quipu rebuild --query`.',
  sql: `select "time", projection, stream as query_id, sequence, kind, type, sqlstate, left(error_message, 120) as error
from m.dead_letters where resolved_at is null and $__timeFilter("time")
order by "time" desc limit ${ROWS}`,
  leadsTo: ['query'],
}

export const tablesMostRead: TablePanel = {
  kind: 'table',
  title: 'Tables most read',
  description: 'Statements that read each table in the time shown.',
  sql: `select catalog_name, schema_name, table_name, count(distinct query_id) as queries, max(at) as last_read
from m.table_access where mode = 'READ' and $__timeFilter(at)
group by 1, 2, 3 order by 4 desc limit ${ROWS}`,
  leadsTo: [],
}

export const oneUser: TablePanel = {
  kind: 'table',
  title: 'Statements of $user',
  description: 'Statements of one user, latest first.',
  sql: `select ${columns}
from m.queries where $__timeFilter(created_at) and user_name = \${user:sqlstring}
order by created_at desc limit ${ROWS}`,
  units,
  leadsTo: ['query', 'trace'],
}
