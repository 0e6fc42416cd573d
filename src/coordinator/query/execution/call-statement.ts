import { setTimeout as sleep } from 'node:timers/promises'
import { EngineError } from '../../../shared/engine-error.ts'
import { isQueryId, type QueryId } from '../../../shared/ids.ts'
import { howToRetry } from '../../../shared/quipu-error.ts'
import { unreachable } from '../../../shared/unreachable.ts'
import type { PlannedStatement } from '../../../planner/planned-statement.ts'
import { endingBy, type Ending } from '../stream/ending.ts'
import type { Canceled } from '../results/cancel-query.ts'
import { NO_STAGES, valuesInEngine, type CoordinatorRunDeps } from './coordinator-run.ts'
import type { ExecutionDeps } from './execution-deps.ts'
import type { RunContext } from './run-context.ts'

type CallDeps = CoordinatorRunDeps & Pick<ExecutionDeps, 'authorize' | 'endQuery'>

type PlannedCall = Extract<PlannedStatement, { kind: 'call' }>

/** Pause before the next try when the log did not answer. */
const PAUSE_MS = 200

/**
 * Runs CALL system.runtime.kill_query, once its client follows. When a successor carries it out again, it recognises
 * that this very statement has ended the other query. A statement that kills itself ends with the failure that it asked
 * for.
 */
export async function runCall(
  deps: CallDeps,
  run: RunContext,
  { queryType, updateType, values, warnings }: PlannedCall,
  analysisNanos: number,
): Promise<void> {
  const [target, message] = await argumentsOf(deps, run, values)
  const recorded = run.recordSoon([
    run.planned({ ...NO_STAGES, queryType, analysisNanos, updateType, warnings, columns: [] }),
  ])
  await Promise.all([recorded, run.leaveUntilFollowed()])
  run.signal.throwIfAborted()
  await killQuery(deps, run, target, message)
  await run.record([run.finish({ updateType })])
}

/** @throws EngineError INVALID_PROCEDURE_ARGUMENT, in Trino's words */
async function argumentsOf(
  deps: CoordinatorRunDeps,
  run: RunContext,
  values: PlannedCall['values'],
): Promise<readonly [target: string, message: string]> {
  const row = values.literalRow ?? (await valuesInEngine(deps, run, values))
  const [target, message] = JSON.parse(row) as readonly (string | null)[]
  if (typeof target !== 'string') throw new EngineError('INVALID_PROCEDURE_ARGUMENT', 'query_id cannot be null')
  if (target === '') throw new EngineError('INVALID_PROCEDURE_ARGUMENT', 'id is empty')
  if (!/^[_a-z0-9]+$/.test(target)) throw new EngineError('INVALID_PROCEDURE_ARGUMENT', `Invalid id ${target}`)
  return [target, message ?? '']
}

/** @throws EngineError NOT_FOUND, NOT_SUPPORTED, PERMISSION_DENIED, in Trino's words */
async function killQuery(deps: CallDeps, run: RunContext, target: string, message: string): Promise<void> {
  const ending = endingBy(run.identity, deps.authorize, { how: 'kill_query', statement: run.queryId }, message)
  for (;;) {
    const outcome = isQueryId(target) ? await ended(deps, target, ending) : 'unknown'
    run.signal.throwIfAborted()
    switch (outcome) {
      case 'done':
        return
      case 'ended':
        throw new EngineError('NOT_SUPPORTED', `Target query is not running: ${target}`)
      case 'refused':
        throw new EngineError('PERMISSION_DENIED', 'Access Denied: Cannot kill query')
      case 'unknown':
        throw new EngineError('NOT_FOUND', `Target query not found: ${target}`)
      case 'waiting':
        await sleep(PAUSE_MS, undefined, { ref: false })
        break
      default:
        return unreachable(outcome)
    }
  }
}

async function ended({ endQuery }: CallDeps, target: QueryId, ending: Ending): Promise<Canceled> {
  try {
    return await endQuery(target, ending)
  } catch (error) {
    if (howToRetry(error) === 'never') throw error
    return 'waiting'
  }
}
