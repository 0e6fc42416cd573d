import type { Config } from '../../config/load-config.ts'
import type { StatementMemoryLimits } from '../../coordinator/dispatch/statement-memory.ts'
import type { GroupLimits } from '../../coordinator/dispatch/resource-groups.ts'
import type { AcceptanceLimits } from '../../coordinator/dispatch/acceptance-queue.ts'
import type { ExecutionDeps } from '../../coordinator/query/execution/execution-deps.ts'
import type { RetentionLimits } from '../../coordinator/query/registry/query-registry.ts'
import type { StatementServiceDeps } from '../../coordinator/query/results/statement-service.ts'
import type { WorkerClientOptions } from '../../coordinator/scheduler/worker-client.ts'

/** The configured values for the parts of a writing coordinator. */
export interface WriterSettings {
  readonly retention: RetentionLimits
  /** Waits at the end of a tenure, milliseconds. */
  readonly tenure: { readonly resignMs: number; readonly handOverMs: number }
  readonly groups: GroupLimits
  readonly memory: StatementMemoryLimits
  readonly acceptance: AcceptanceLimits
  readonly statements: StatementServiceDeps['limits']
  readonly workers: Pick<WorkerClientOptions, 'requestTimeoutMs' | 'taskBodyBytes' | 'pageMaxBytes'>
  readonly execution: Pick<ExecutionDeps, 'maxAttempts' | 'firstAppendHoldMs' | 'limits'>
  /** How long a query waits for a worker to be there, milliseconds. */
  readonly workerWaitMs: number
  /** A page is lost once its worker has been unreachable for this long, milliseconds. */
  readonly pageLostMs: number
  /** Memory for result pages of all queries. */
  readonly pageMemoryBytes: number
}

/**
 * Enough that each commit of the log holds many statements, sixteen of one user; few enough that a new client is soon
 * next.
 */
const STATEMENTS_AT_ONCE = 20
/** The log writes these one after the other, and other records wait for them. */
const LONG_STATEMENT_BYTES = 64 * 1024
const LONG_STATEMENTS_AT_ONCE = 2

export function writerSettings({ timeouts, limits }: Config): WriterSettings {
  return {
    retention: {
      firstFollowMs: timeouts.firstFollowMs,
      clientAbsentMs: timeouts.clientAbsentMs,
      inMemoryMs: timeouts.endedInMemoryMs,
      endedInMemory: limits.endedQueries,
      endedBytes: limits.endedQueryBytes,
    },
    tenure: { resignMs: timeouts.resignMs, handOverMs: timeouts.handOverMs },
    groups: { running: limits.runningQueries, queued: limits.queuedQueries },
    memory: {
      totalBytes: limits.openStatementBytes,
      userBytes: limits.userStatementBytes,
      addressBytes: limits.addressStatementBytes,
    },
    acceptance: {
      atOnce: STATEMENTS_AT_ONCE,
      longBytes: LONG_STATEMENT_BYTES,
      longAtOnce: LONG_STATEMENTS_AT_ONCE,
      waiting: limits.openQueries,
      // One user leaves room for the others.
      waitingOfUser: Math.max(1, Math.floor(limits.openQueries / 2)),
      waitMs: timeouts.postLogWaitMs,
    },
    statements: {
      openQueries: limits.openQueries,
      postLogWaitMs: timeouts.postLogWaitMs,
      postPlanWaitMs: timeouts.postPlanWaitMs,
      answersKeptMs: timeouts.answersKeptMs,
    },
    workers: {
      requestTimeoutMs: timeouts.workerRequestMs,
      taskBodyBytes: limits.taskBodyBytes,
      pageMaxBytes: limits.pageMaxBytes,
    },
    execution: {
      maxAttempts: limits.batchAttempts,
      firstAppendHoldMs: timeouts.firstAppendHoldMs,
      limits: {
        pageBytes: limits.pageBytes,
        inlineBytes: limits.inlineResultBytes,
        server: {
          runMs: timeouts.queryRunMs,
          executionMs: timeouts.queryExecutionMs,
          planningMs: timeouts.queryPlanningMs,
          cpuMs: timeouts.queryCpuMs,
          memoryBytes: limits.queryMemoryBytes,
          nodeMemoryBytes: limits.queryNodeMemoryBytes,
          scanBytes: limits.queryScanBytes,
        },
        planBytes: limits.taskBodyBytes,
        headerBytes: limits.headerBytes,
        answersKeptMs: timeouts.answersKeptMs,
      },
    },
    workerWaitMs: timeouts.workerWaitMs,
    pageLostMs: timeouts.pageLostMs,
    pageMemoryBytes: limits.pageMemoryBytes,
  }
}
