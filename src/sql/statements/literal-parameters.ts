import { EngineError } from '../../shared/engine-error.ts'
import type { Expression } from '../syntax/ast.ts'
import type { Statement, TableExecute } from '../syntax/ast-statements.ts'
import type { CreateMaterializedView, CreateView } from '../syntax/ast-definitions.ts'
import { withNodes, type AnyNode } from '../syntax/tree.ts'
import { literalValue } from './constant-values.ts'

type LiteralStatement = CreateView | CreateMaterializedView | TableExecute

/**
 * Whether the parameters of a statement are replaced by the values of EXECUTE … USING before it is analyzed: the query of
 * a view is stored and must have a meaning alone, and a table procedure takes constants.
 */
export function takesLiterals(statement: Statement): statement is LiteralStatement {
  return Object.hasOwn(TAKERS, statement.kind)
}

const TAKERS: Readonly<Record<LiteralStatement['kind'], string>> = {
  CreateView: 'The query of a view',
  CreateMaterializedView: 'The query of a view',
  TableExecute: 'A table procedure',
}

/**
 * The statement with the values in the positions of its parameters.
 * @throws EngineError NOT_SUPPORTED for a value that is no literal: it may differ each time a view is read
 */
export function withLiterals<S extends LiteralStatement>(statement: S, using: readonly Expression[]): S {
  return withNodes(statement, (node) => {
    if (!isParameter(node)) return undefined
    const value = using[node.index]
    if (value !== undefined && isLiteral(value)) return { ...value, span: node.span }
    const message = `${TAKERS[statement.kind]} takes only literals as values of its parameters`
    throw new EngineError('NOT_SUPPORTED', message)
  })
}

function isParameter(node: AnyNode): node is AnyNode & { readonly index: number } {
  return node.kind === 'Parameter'
}

function isLiteral(value: Expression): boolean {
  return literalValue(value) !== undefined || value.kind === 'GenericLiteral' || value.kind === 'IntervalLiteral'
}
