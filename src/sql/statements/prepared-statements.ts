import { EngineError } from '../../shared/engine-error.ts'
import type { Deallocate, Prepare, Statement } from '../syntax/ast-statements.ts'
import type { SessionEffect } from './session-statements.ts'
import type { StatementInput } from '../statement-input.ts'

/** The error of a statement that names a prepared statement which the client did not send. */
export function notPrepared(name: string): EngineError {
  return new EngineError('NOT_FOUND', `Prepared statement not found: ${name}`)
}

const neverPrepared: Readonly<Record<string, string>> = {
  Prepare: 'PREPARE',
  Execute: 'EXECUTE',
  ExecuteImmediate: 'EXECUTEIMMEDIATE',
  Deallocate: 'DEALLOCATE',
}

/**
 * Refuses statements that cannot be prepared. A client may send any text as a prepared statement, and one that executes
 * itself would never end.
 * @throws EngineError NOT_SUPPORTED
 */
export function checkPrepared(statement: Statement): void {
  if (statement.kind === 'Explain' || statement.kind === 'ExplainAnalyze') return checkPrepared(statement.statement)
  const refused = neverPrepared[statement.kind]
  if (refused !== undefined)
    throw new EngineError('NOT_SUPPORTED', `Invalid statement type for prepared statement: ${refused}`)
}

export function prepare(input: StatementInput, node: Prepare): SessionEffect {
  checkPrepared(node.statement)
  const { start, end } = node.statement.span
  const sql = input.text.sql.slice(start, end)
  return { updateType: 'PREPARE', changes: [{ kind: 'AddedPrepare', name: node.name.value, sql }] }
}

export function deallocate(input: StatementInput, node: Deallocate): SessionEffect {
  const wanted = node.name.value.toLowerCase()
  const names = Object.keys(input.session.preparedStatements)
  if (!names.some((name) => name.toLowerCase() === wanted)) throw notPrepared(node.name.value)
  return { updateType: 'DEALLOCATE', changes: [{ kind: 'DeallocatedPrepare', name: node.name.value }] }
}
