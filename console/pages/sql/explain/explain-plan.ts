import type { PlanNodeInfo } from '../../../../src/protocol/info/schemas/query.ts'
import { readRows, StatementFailed } from '../../../api/statement/read-rows.ts'
import type { StatementSession } from '../../../api/statement/session.ts'

/** The line before the statement. */
const HEAD = 'EXPLAIN (TYPE LOGICAL, FORMAT JSON)\n'

/**
 * The plan of a statement, which does not run.
 * @throws StatementFailed with the position in the statement
 */
export async function explainedPlan(
  sql: string,
  session: StatementSession,
  signal: AbortSignal,
): Promise<PlanNodeInfo | undefined> {
  const rows = await readRows(HEAD + sql, session, { source: 'explain', signal }).catch((error: unknown) => {
    throw error instanceof StatementFailed ? withoutHead(error) : error
  })
  const text = rows[0]?.[0]
  return typeof text === 'string' ? planNode(parsed(text)) : undefined
}

/** The error with its position in the statement itself: the server also counts the line before it. */
function withoutHead(failure: StatementFailed): StatementFailed {
  const { error } = failure
  const { errorLocation: at, message } = error
  if (!at || at.lineNumber === 1) return failure
  const lineNumber = at.lineNumber - 1
  return new StatementFailed({
    ...error,
    message: message.replace(`line ${at.lineNumber}:`, `line ${lineNumber}:`),
    errorLocation: { ...at, lineNumber },
  })
}

/** A statement without a plan, such as CREATE TABLE, is explained by a text. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return { name: text.trim() }
  }
}

function planNode(node: unknown): PlanNodeInfo | undefined {
  if (!isRecord(node) || typeof node['name'] !== 'string') return undefined
  const { name, descriptor, outputs, estimates, children } = node
  const estimate: unknown = listOf(estimates)[0]
  return {
    name,
    details: isRecord(descriptor)
      ? Object.fromEntries(Object.entries(descriptor).map(([key, one]) => [key, String(one)]))
      : {},
    layout: listOf(outputs).flatMap((one) =>
      isRecord(one) ? [`${String(one['symbol'])}:${String(one['type'])}`] : [],
    ),
    estimate: {
      ...number(estimate, 'outputRowCount', 'rows'),
      ...number(estimate, 'outputSizeInBytes', 'bytes'),
    },
    children: listOf(children).flatMap((one) => planNode(one) ?? []),
  }
}

/** Unknown numbers are the text NaN. */
function number(estimate: unknown, name: string, shown: 'rows' | 'bytes') {
  const value = isRecord(estimate) ? estimate[name] : undefined
  return typeof value === 'number' ? { [shown]: value } : {}
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
