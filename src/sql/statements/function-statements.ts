import { EngineError } from '../../shared/engine-error.ts'
import { errorAt } from '../analyzer/context.ts'
import type { StatementInput } from '../statement-input.ts'
import type { QualifiedName } from '../syntax/ast-node.ts'
import type { CreateFunction, DropFunction } from '../syntax/ast-definitions.ts'
import type { AnyNode } from '../syntax/tree.ts'
import type { SessionEffect } from './session-statements.ts'

/** DROP FUNCTION changes nothing, because no catalog stores functions. @throws EngineError NOT_FOUND without IF EXISTS */
export function dropFunction(input: StatementInput, node: DropFunction): SessionEffect {
  checkName(input, node, node.name)
  if (!node.exists) throw errorAt(input, node, 'NOT_FOUND', 'Function not found')
  return { updateType: 'DROP FUNCTION', changes: [] }
}

/** @throws EngineError always: no catalog stores functions */
export function createFunction(input: StatementInput, node: CreateFunction): never {
  checkName(input, node, node.specification.name)
  throw new EngineError('NOT_SUPPORTED', 'This connector does not support creating functions')
}

/** The name of a stored function must have all three parts: no schema is set for shorter names. */
function checkName(input: StatementInput, node: AnyNode, { parts }: QualifiedName): void {
  if (parts.length === 1) {
    const message = 'Catalog and schema must be specified when function schema is not configured'
    throw errorAt(input, node, 'NOT_SUPPORTED', message)
  }
  if (parts.length !== 3) {
    const message = 'Function name must be unqualified or fully qualified with catalog and schema'
    throw errorAt(input, node, 'SYNTAX_ERROR', message)
  }
}
