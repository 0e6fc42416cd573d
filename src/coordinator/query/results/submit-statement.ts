import { LogUnavailable } from '../../../events/event-log.ts'
import { settlesWithin } from '../../../shared/deadline.ts'
import { EngineError, failureOf } from '../../../shared/engine-error.ts'
import type { LimitOwnerOf } from '../../../shared/limit-owner.ts'
import type { StatementMemory } from '../../dispatch/statement-memory.ts'
import { statementBytes } from '../registry/held-bytes.ts'
import { personOf } from '../session/session-identity.ts'
import type { PostedStatement } from '../secrets/query-secrets.ts'
import type { QueryExecution, Submission } from '../registry/query-handle.ts'
import type { QueryRegistry } from '../registry/query-registry.ts'

export interface SubmitDeps {
  readonly registry: Pick<QueryRegistry, 'open' | 'add'>
  readonly memory: StatementMemory
  readonly ownerOf: LimitOwnerOf
  readonly start: (submission: Submission) => QueryExecution
  readonly limits: {
    readonly openQueries: number
    readonly postLogWaitMs: number
    readonly postPlanWaitMs: number
  }
  readonly accepting: () => boolean
  /** False when the disk is too full for more of the event log. */
  readonly hasDiskRoom: () => boolean
}

/** Accepts a statement, starts its query and waits until the client may see it: `StatementService.submit`. */
export async function submitStatement(deps: SubmitDeps, statement: PostedStatement): Promise<QueryExecution> {
  admit(deps)
  const { text, created } = statement
  const held = deps.memory.hold(deps.ownerOf(personOf(created)), statementBytes(text.sql, created))
  const execution = deps.start({ held, ...statement })
  deps.registry.add(execution)
  await untilCreated(execution, deps.limits.postLogWaitMs)
  await settlesWithin(execution.planKnown, deps.limits.postPlanWaitMs)
  return execution
}

/** @throws EngineError, LogUnavailable when this coordinator takes no statement now */
function admit({ registry, limits, accepting, hasDiskRoom }: SubmitDeps): void {
  if (!accepting()) throw new EngineError('SERVER_SHUTTING_DOWN', 'The server is shutting down', { retry: 'later' })
  if (registry.open >= limits.openQueries)
    throw new EngineError('TOO_MANY_REQUESTS_FAILED', `Too many open queries: ${limits.openQueries} are allowed`, {
      retry: 'later',
    })
  if (!hasDiskRoom())
    throw new LogUnavailable(
      'The disk of the data folder is almost full: no statement is accepted until there is space',
    )
}

/** @throws LogUnavailable when the log does not take the query in time: it is given up */
async function untilCreated(execution: QueryExecution, waitMs: number): Promise<void> {
  const accepted = await settlesWithin(execution.created, waitMs).catch((error: unknown) => {
    // Too many appends wait for an unreachable log: it reports this at once.
    if (error instanceof LogUnavailable) return false
    throw error
  })
  if (accepted) return
  const message = 'The event log did not answer in time; the client got the answer that the statement was not accepted'
  // The query may still become valid: then it ends at once, and this is not awaited.
  void execution.fail(failureOf('ABANDONED_QUERY', message)).catch(() => {})
  throw new LogUnavailable('The event log does not answer; the statement was not accepted')
}
