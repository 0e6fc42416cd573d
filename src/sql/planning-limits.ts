import { createCpuBudget, type CpuBudget, type CpuBudgetOptions } from '../shared/cpu-budget.ts'
import { EngineError } from '../shared/engine-error.ts'
import { durationOf, type Quantity } from '../shared/quantities.ts'
import { StatementText, type PreparedTexts } from './parsed-statement.ts'
import type { SessionContext } from './session.ts'
import { propertyValue } from './session/session-properties.ts'
import { checkTextLength } from './syntax/limits.ts'

/**
 * The CPU time that planning may take on the event loop. All other work waits meanwhile, and a process that is silent
 * for long is considered dead.
 */
export const PLANNING_CPU_MS = 3_000

/** The CPU time for the planning of a statement. A session with a shorter planning time limit gets only that limit. */
export function planningBudget(milliseconds: number, session: SessionContext, loop: CpuBudgetOptions): CpuBudget {
  const limit = planningTime(session)
  const [most, what] =
    limit.amount / 1e6 < milliseconds
      ? [limit.amount / 1e6, `time limit of ${limit.shown}`]
      : [milliseconds, `CPU time of ${milliseconds} ms`]
  return budgetOf(most, what, loop)
}

/**
 * Parses the prepared statements of a session, all within the CPU time for planning.
 * @throws EngineError SYNTAX_ERROR, QUERY_TEXT_TOO_LARGE, EXCEEDED_TIME_LIMIT
 */
export function checkPreparedTexts(texts: PreparedTexts, loop: CpuBudgetOptions): void {
  budgetOf(PLANNING_CPU_MS, `CPU time of ${PLANNING_CPU_MS} ms`, loop).run(() => {
    for (const sql of Object.values(texts)) {
      checkTextLength(sql)
      const parsed = new StatementText(sql).parse()
      if (parsed.kind === 'invalid') throw parsed.error
    }
  })
}

function budgetOf(milliseconds: number, what: string, loop: CpuBudgetOptions): CpuBudget {
  return createCpuBudget(
    milliseconds,
    () => new EngineError('EXCEEDED_TIME_LIMIT', `Query exceeded the maximum planning ${what}`),
    loop,
  )
}

function planningTime(session: SessionContext): Quantity {
  const asked = durationOf(propertyValue(session, 'query_max_planning_time'))
  const bound = session.bounds?.['query_max_planning_time']
  if (!asked || !bound) return asked ?? bound ?? { amount: Infinity, shown: '' }
  return bound.amount < asked.amount ? bound : asked
}

/**
 * The error that the client gets for an error of the planning. Depths are counted, so the stack overflows only if the
 * caller left little of it.
 */
export function asStatementError(error: unknown): unknown {
  if (!(error instanceof RangeError)) return error
  return new EngineError('STACK_OVERFLOW', 'statement is too large (stack overflow during analysis)', { cause: error })
}
