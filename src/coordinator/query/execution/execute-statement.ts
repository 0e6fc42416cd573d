import { computes, resultStage } from '../../../planner/query-plan.ts'
import { EngineError } from '../../../shared/engine-error.ts'
import { unreachable } from '../../../shared/unreachable.ts'
import { groupOfQuery } from '../stream/state.ts'
import type { PlannedStatement } from '../../../planner/planned-statement.ts'
import type { QueryEventOf } from '../stream/events.ts'
import { recordedPlan } from '../stream/planned-data.ts'
import { changesAtCluster } from '../stream/remote-routed.ts'
import type { StatementSurvey } from '../../front-end-threads/thread-messages.ts'
import type { Resumption, Submission } from '../registry/query-handle.ts'
import type { Admission } from './admission.ts'
import type { Analysis } from './analysis.ts'
import type { HeldLimits } from './held-limits.ts'
import { runCall } from './call-statement.ts'
import type { ExecutionDeps } from './execution-deps.ts'
import { runExplainAnalyze } from './explain-analyze-statement.ts'
import { runExplain } from './explain-statement.ts'
import { EarlyAnalysis } from './early-analysis.ts'
import { NO_STAGES } from './coordinator-run.ts'
import { planningBefore } from './planning-before.ts'
import { runQuery } from './query-statement.ts'
import type { RunContext } from './run-context.ts'
import { runPlan } from './run-plan.ts'
import { runSessionStatement } from './session-statement.ts'
import { changedMetadata } from './changed-metadata.ts'
import { targetOf, type Delegation } from './delegation.ts'
import { leftOutWarning } from './left-out-warning.ts'
import { listsCatalogs } from './metadata-statement.ts'
import { fullNames, routeStatement } from './route-statement.ts'
import { resumeRemoteStatement, runRemoteStatement } from './remote-statement.ts'
import type { Waiters } from './waiters.ts'
import { secretsNotKept } from '../secrets/secrets-not-kept.ts'
import { ignored } from '../session/transactions.ts'
import { carryOutWrite, resumeWrite } from './write-statement.ts'

type Planned = QueryEventOf<'QueryPlanned'>['data']

interface StatementRun {
  readonly deps: ExecutionDeps
  readonly run: RunContext
  readonly submission: Submission
  readonly resumed: Resumption | undefined
  readonly admission: Admission
  readonly analysis: Analysis
  readonly limits: Pick<HeldLimits, 'planning' | 'narrow' | 'dispose'>
  readonly waiters: Waiters
}

/**
 * Carries out a statement from its text to its result. Resolves once all of it is recorded.
 * @throws the error that fails the query
 */
export async function executeStatement(statement: StatementRun): Promise<void> {
  const { deps, submission, resumed, admission, analysis } = statement
  if (resumed?.state.planned) return goOn(statement, resumed.state.planned)
  // A statement of an earlier coordinator is checked again: no event says whether it was checked before.
  const { identity, queryId } = statement.run
  if (!deps.authorize(identity, { action: 'execute', queryId }))
    throw new EngineError('PERMISSION_DENIED', 'Access Denied: Cannot execute query')
  if (resumed && submission.created.redacted) throw secretsNotKept()
  // The groups and the planning limit need the type of a statement that this process has not parsed yet.
  if (resumed) await deps.texts.findType(submission)
  const resumedAt = deps.clock.now()
  // A query that had a slot in its resource group keeps it.
  if (resumed?.state.kind === 'PLANNING') admission.occupy()
  else await admission.enter(resumed !== undefined)
  await checkTransaction(statement)
  const analysisStart = deps.clock.monotonicMs()
  statement.limits.planning(resumed && planningBefore(resumed.state, submission.type.get(), resumedAt))
  const early = new EarlyAnalysis(analysis)
  const surveyed = deps.delegation && (await surveyFor(deps.delegation, analysis))
  if (surveyed && (await runElsewhere(statement, surveyed, early, analysisStart))) return
  const analyzed = surveyed ? await analyzeBesideClusters(statement, surveyed, early) : await early.take()
  statement.limits.narrow(propertiesOf(analyzed))
  const analysisNanos = Math.round((deps.clock.monotonicMs() - analysisStart + analysis.parsedBeforeMs) * 1e6)
  return carryOut(statement, analyzed, analysisNanos)
}

/** The properties of the statement that decide its route, and the clusters that it may go to. */
interface Surveyed {
  readonly delegation: Delegation
  readonly survey: StatementSurvey
}

async function surveyFor(delegation: Delegation, analysis: Analysis): Promise<Surveyed> {
  await delegation.clusters.ready
  return { delegation, survey: await analysis.survey() }
}

/**
 * COMMIT and ROLLBACK make these checks later, because they also make the client leave its transaction.
 * @throws EngineError TRANSACTION_ALREADY_ABORTED in a transaction in which a statement failed; UNKNOWN_TRANSACTION
 */
async function checkTransaction({ deps, submission, analysis }: StatementRun): Promise<void> {
  const { session } = submission
  if (session.transactionId === undefined || session.transactionId === 'NONE') return
  const { kind } = await analysis.survey()
  if (kind === 'Commit' || kind === 'Rollback') return
  // START TRANSACTION fails in any transaction.
  if (kind !== 'StartTransaction') deps.transactions.verify(session)
  if (deps.transactions.isAborted(session)) throw ignored()
}

/**
 * Finds the route of the statement. Runs it at a cluster if the route leads there.
 * @returns false when it runs here
 * @throws EngineError QUERY_REJECTED by a rule
 */
async function runElsewhere(
  statement: StatementRun,
  { delegation, survey }: Surveyed,
  early: EarlyAnalysis,
  startMs: number,
): Promise<boolean> {
  const { deps, run, submission, analysis } = statement
  const query = run.aggregate.intended
  const resourceGroup = query.kind === 'NONE' ? submission.created.resourceGroup : groupOfQuery(query)
  const { routed, analyse } = await routeStatement(delegation, {
    submission,
    survey,
    identity: run.identity,
    resourceGroup,
    rightsOf: deps.objectsOf(run.identity),
    tableHere: (catalog, schema, table) => deps.metadata.table(catalog, schema, table),
    bytesHere: () => early.bytes(),
    analysis,
    signal: run.signal,
  })
  run.signal.throwIfAborted()
  run.keepRoute(routed)
  if (!routed || routed.to === 'local') return false
  early.drop()
  const queryType = survey.queryType ?? 'SELECT'
  const nanosNow = () => Math.round((deps.clock.monotonicMs() - startMs + analysis.parsedBeforeMs) * 1e6)
  if (!analyse) submission.text.forget()
  if (routed.to === 'reject') {
    await run.record([run.planned({ ...NO_STAGES, queryType, columns: [], analysisNanos: nanosNow() })])
    throw new EngineError('QUERY_REJECTED', routed.message)
  }
  // If the answer to a POST is lost, the client repeats the POST. So a change begins after the client's next request.
  if (!routed.readOnly) await enterOnceFollowed(statement)
  const { text, session } = submission
  const delegated = {
    routed,
    queryType,
    sql: text.sql,
    session,
    async analyse() {
      const analysed = await analyse?.()
      text.forget()
      return { analysed, analysisNanos: nanosNow() }
    },
  }
  try {
    await runRemoteStatement(delegation, run, delegated)
  } finally {
    for (const changed of changedMetadata(survey, fullNames(survey, session)))
      delegation.catalogs.drop(targetOf(routed), changed)
  }
  return true
}

/** Adds a warning to a list of names that lacks the catalogs of a cluster. */
async function analyzeBesideClusters(
  { submission }: StatementRun,
  { delegation, survey }: Surveyed,
  early: EarlyAnalysis,
): Promise<PlannedStatement> {
  const planned = await early.take()
  if (planned.kind !== 'query') return planned
  if (!listsCatalogs(survey.kind, fullNames(survey, submission.session))) return planned
  const missing = delegation.catalogs.unlisted()
  if (missing.length === 0) return planned
  const message = `The catalogs of these clusters are left out, because they do not answer: ${missing.join(', ')}`
  return { ...planned, warnings: [...planned.warnings, leftOutWarning(message)] }
}

/** Continues a planned query after a restart: it is not planned again, and published pages are not computed again. */
async function goOn(statement: StatementRun, planned: Planned): Promise<void> {
  const { deps, run, admission, analysis, waiters } = statement
  const { created } = statement.submission
  waiters.planIsKnown()
  admission.occupy()
  run.keepRoute(planned.routed)
  if (planned.routed?.to === 'reject') throw new EngineError('QUERY_REJECTED', planned.routed.message)
  if (run.aggregate.intended.kind === 'FINISHING') return
  if (planned.route === 'delegated') return resumeDelegated(statement, planned)
  const plan = recordedPlan(planned)
  // EXPLAIN ANALYZE reports the figures of one run, and that run was interrupted.
  if (plan && resultStage(plan.stages)?.output === 'none')
    throw new EngineError(
      'COORDINATOR_RESTARTED',
      'The coordinator was restarted while the statement was measured; submit it again',
    )
  if (planned.write) {
    const resumedWrite = resumeWrite(deps, run, planned)
    if (resumedWrite !== 'analyze') return resumedWrite
    if (created.redacted) throw secretsNotKept()
    return analyzeAndWrite(statement, 0)
  }
  if (plan?.stages.some(computes)) {
    await runPlan(deps, run, plan, undefined)
    return
  }
  if (created.redacted) throw secretsNotKept()
  // No stage computes: session statements, CALL and EXPLAIN give the same answer again.
  await carryOut(statement, await analysis.analyze(), 0)
}

async function resumeDelegated({ deps, run, submission }: StatementRun, planned: Planned): Promise<void> {
  if (!deps.delegation)
    throw new EngineError(
      'REMOTE_HOST_GONE',
      'The statement runs at a cluster, and this coordinator has none configured',
    )
  const { created, text, session } = submission
  try {
    await resumeRemoteStatement(
      deps.delegation,
      run,
      planned,
      created.redacted ? undefined : { sql: text.sql, session },
    )
  } finally {
    // After a restart the text may not be known, so all metadata of the target is dropped: little was read since then.
    const { routed } = planned
    if (changesAtCluster(routed)) deps.delegation.catalogs.drop(targetOf(routed), {})
  }
}

/** The properties that the statement sets for itself. */
function propertiesOf(analyzed: PlannedStatement): Readonly<Record<string, string>> {
  if (analyzed.kind === 'explain') return propertiesOf(analyzed.statement)
  return (analyzed.kind === 'query' && analyzed.properties) || {}
}

async function carryOut(statement: StatementRun, analyzed: PlannedStatement, analysisNanos: number): Promise<void> {
  const { deps, run } = statement
  switch (analyzed.kind) {
    case 'query':
      return runQuery(deps, run, analyzed, analysisNanos)
    case 'session':
      // A user that set a limit that no statement can keep must be able to reset it.
      statement.limits.dispose()
      return runSessionStatement(deps, run, analyzed, { analysisNanos, session: statement.submission.session })
    case 'call':
      return runCall(deps, run, analyzed, analysisNanos)
    case 'explain':
      return analyzed.analyze
        ? runExplainAnalyze(deps, run, analyzed, analysisNanos)
        : runExplain(deps, run, analyzed, analysisNanos)
    case 'write':
      // Without an `await` here, this function does not hold the analysis in memory until the client's next request.
      return writeOnceFollowed(statement, analysisNanos)
    default:
      return unreachable(analyzed)
  }
}

/** Releases the query's slot in its group until the client's next request, and then waits for a slot again. */
async function enterOnceFollowed({ run, admission, waiters, limits }: StatementRun): Promise<void> {
  const followed = run.leaveUntilFollowed()
  waiters.planIsKnown()
  waiters.wake()
  await followed
  run.signal.throwIfAborted()
  await admission.enter()
  limits.planning()
}

async function writeOnceFollowed(statement: StatementRun, analysisNanos: number): Promise<void> {
  await enterOnceFollowed(statement)
  // The client sent no request until now: the catalogs may have changed since the first analysis.
  return analyzeAndWrite(statement, analysisNanos)
}

async function analyzeAndWrite({ deps, run, analysis }: StatementRun, analysisNanos: number): Promise<void> {
  const again = () => analyzeWrite(analysis)
  return carryOutWrite(deps, run, { analyzed: await again(), analysisNanos, again })
}

async function analyzeWrite(analysis: Analysis): Promise<Extract<PlannedStatement, { kind: 'write' }>> {
  const analyzed = await analysis.analyze()
  if (analyzed.kind !== 'write') throw new Error('a statement that writes has become another')
  return analyzed
}
