import type { PlannedStatement } from '../../../planner/planned-statement.ts'
import { cannotCommit } from '../session/transactions.ts'
import { checkHeaders, responseHeaders } from '../session/session-headers.ts'
import type { QuerySession } from '../stream/events.ts'
import { NO_STAGES } from './coordinator-run.ts'
import type { ExecutionDeps } from './execution-deps.ts'
import type { RunContext } from './run-context.ts'

/** Runs SET SESSION, PREPARE, USE …: once the client follows, the answer carries what the client is to remember. */
export async function runSessionStatement(
  deps: Pick<ExecutionDeps, 'limits' | 'transactions'>,
  run: RunContext,
  analyzed: Extract<PlannedStatement, { kind: 'session' }>,
  { analysisNanos, session }: { readonly analysisNanos: number; readonly session: QuerySession },
): Promise<void> {
  const { queryType, updateType, warnings } = analyzed
  const headers = responseHeaders(run.queryId, analyzed.changes)
  checkHeaders(headers, deps.limits.headerBytes)
  run.keepHeaders(headers)
  run.hold(JSON.stringify(headers).length)
  const recorded = run.recordSoon([
    run.planned({ ...NO_STAGES, queryType, analysisNanos, updateType, warnings, columns: [] }),
  ])
  await Promise.all([recorded, run.leaveUntilFollowed()])
  run.signal.throwIfAborted()
  const ending = analyzed.changes.find(({ kind }) => kind === 'Commit' || kind === 'Rollback')
  if (ending) deps.transactions.verify(session)
  if (ending?.kind === 'Commit' && deps.transactions.isAborted(session)) throw cannotCommit()
  await run.record([run.finish({ responseHeaders: [...headers], updateType })])
}
