import { LogUnavailable } from '../../coordinator/query/statement-service.ts'
import { EventLogError } from '../../events/event-log.ts'

/**
 * The log, Postgres or a worker is away, or another coordinator writes: it comes back, or recovery says what became of the
 * query. Or this process drains: the next coordinator says it.
 */
export function isPassing(error: unknown): boolean {
  // The service's own, the event log's, and a query's whose coordinator drains.
  if (error instanceof LogUnavailable || error instanceof EventLogError) return true
  if (error instanceof Error && error.name === 'Suspended') return true
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return (
    /^(ECONN|EPIPE|ENOENT|ETIMEDOUT|57|08|53)/.test(code) ||
    (error instanceof Error && /terminat|timeout/i.test(error.message))
  )
}
