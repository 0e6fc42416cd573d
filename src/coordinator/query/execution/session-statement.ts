import type { PlannedStatement } from '../../../planner/planned-statement.ts'
import { checkHeaders, responseHeaders } from '../session/session-headers.ts'
import { NO_STAGES } from './coordinator-run.ts'
import type { ExecutionDeps } from './execution-deps.ts'
import type { RunContext } from './run-context.ts'

/** Runs SET SESSION, PREPARE, USE …: once the client follows, the answer carries what the client is to remember. */
export async function runSessionStatement(
  deps: Pick<ExecutionDeps, 'limits'>,
  run: RunContext,
  analyzed: Extract<PlannedStatement, { kind: 'session' }>,
  analysisNanos: number,
): Promise<void> {
  const { queryType, updateType, warnings } = analyzed
  const headers = responseHeaders(run.queryId, analyzed.changes)
  run.keepHeaders(headers)
  checkHeaders(headers, deps.limits.headerBytes)
  run.hold(JSON.stringify(headers).length)
  const recorded = run.recordSoon([
    run.planned({ ...NO_STAGES, queryType, analysisNanos, updateType, warnings, columns: [] }),
  ])
  await Promise.all([recorded, run.leaveUntilFollowed()])
  run.signal.throwIfAborted()
  await run.record([run.finish({ responseHeaders: [...headers], updateType })])
}
