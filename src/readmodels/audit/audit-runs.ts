import pg from 'pg'
import type { Finding, FindingKind } from '../../events/audit/finding.ts'
import type { QueryRows } from '../../events/projection.ts'

/** Stores the number of an audit's findings by kind, for the coordinator's metrics. */
export async function recordAuditRun(database: pg.ClientConfig, findings: readonly Finding[]): Promise<void> {
  const counts = countedByKind(findings)
  const client = new pg.Client(database)
  await client.connect()
  try {
    await client.query('insert into quipu_log.audit_runs (findings) values ($1)', [JSON.stringify(counts)])
  } finally {
    await client.end()
  }
}

/** The number of findings by kind; kinds without findings are absent. */
export function countedByKind(findings: readonly Finding[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { kind } of findings) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

export interface AuditRuns {
  /** Time when the last audit without findings ended, seconds since the epoch; absent without one. */
  readonly cleanAt: number | undefined
  /** Sums over all audits. */
  readonly findings: readonly { readonly kind: FindingKind; readonly count: number }[]
}

export async function readAuditRuns(read: QueryRows): Promise<AuditRuns> {
  const [clean] = await read(
    `select extract(epoch from max(ended_at))::float8 as at from quipu_log.audit_runs where findings = '{}'`,
    [],
  )
  const findings = await read(
    `select kind, sum(count::bigint)::float8 as count from quipu_log.audit_runs, jsonb_each_text(findings) as f(kind, count)
     group by 1`,
    [],
  )
  return {
    cleanAt: clean?.['at'] === null || clean === undefined ? undefined : Number(clean['at']),
    findings: findings.map(({ kind, count }) => ({ kind: String(kind) as FindingKind, count: Number(count) })),
  }
}
