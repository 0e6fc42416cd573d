import { EngineError } from '../../shared/engine-error.ts'
import { unreachable } from '../../shared/unreachable.ts'
import type { StartTransaction, TransactionStatement } from '../syntax/ast-statements.ts'
import type { SessionEffect } from './session-statements.ts'
import { errorAt } from '../analyzer/context.ts'
import type { StatementInput } from '../statement-input.ts'

export function transactionEffect(input: StatementInput, node: TransactionStatement): SessionEffect {
  const { transactionId } = input.session
  const isOpen = transactionId !== undefined && transactionId !== 'NONE'
  switch (node.kind) {
    case 'StartTransaction':
      if (transactionId === undefined) {
        throw new EngineError('INCOMPATIBLE_CLIENT', 'Client does not support transactions')
      }
      if (isOpen) throw new EngineError('NOT_SUPPORTED', 'Nested transactions not supported')
      return { updateType: 'START TRANSACTION', changes: [{ kind: 'StartTransaction', ...modesOf(input, node) }] }
    case 'Commit':
    case 'Rollback':
      if (!isOpen) throw new EngineError('NOT_IN_TRANSACTION', 'No transaction in progress')
      return { updateType: node.kind.toUpperCase(), changes: [{ kind: node.kind }] }
    default:
      return unreachable(node)
  }
}

function modesOf(input: StatementInput, node: StartTransaction): { isolation: string; readOnly: boolean } {
  const levels = node.modes.filter((mode) => mode.kind === 'IsolationLevel')
  const accesses = node.modes.filter((mode) => mode.kind === 'TransactionAccessMode')
  if (levels.length > 1) {
    throw errorAt(input, levels[1]!, 'SYNTAX_ERROR', 'Multiple transaction isolation levels specified')
  }
  if (accesses.length > 1) {
    throw errorAt(input, accesses[1]!, 'SYNTAX_ERROR', 'Multiple transaction read modes specified')
  }
  return { isolation: levels[0]?.level ?? 'READ UNCOMMITTED', readOnly: accesses[0]?.readOnly ?? false }
}
