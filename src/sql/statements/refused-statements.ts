import { EngineError } from '../../shared/engine-error.ts'
import type { Statement } from '../syntax/ast-statements.ts'
import { errorAt } from '../analyzer/context.ts'
import { accessDenied } from '../access-control.ts'
import type { StatementInput } from '../statement-input.ts'

/** Operations that no connector here supports, in the words of Trino's connectors. */
const words: Readonly<Partial<Record<Statement['kind'], string>>> = {
  Analyze: 'analyze',
}

function unsupported(doing: string): EngineError {
  return new EngineError('NOT_SUPPORTED', `This connector does not support ${doing}`)
}

/** The name under which users know an unsupported statement. */
function wordsOf(kind: Statement['kind']): string {
  return kind.replace(/([a-z])([A-Z])/g, '$1 $2').toUpperCase()
}

/** Refuses statements that parse but are not supported, in Trino's words if Trino refuses them too. */
export function refuse(input: StatementInput, node: Statement): never {
  switch (node.kind) {
    case 'CreateRole':
      if (input.session.rightsOf) throw accessDenied(`Cannot create role ${node.name.value.toLowerCase()}`)
      throw new EngineError('NOT_SUPPORTED', 'System roles are not enabled')
    case 'DropRole':
      throw errorAt(input, node, 'ROLE_NOT_FOUND', `Role '${node.name.value.toLowerCase()}' does not exist`)
    case 'CreateCatalog':
      throw new EngineError('NOT_SUPPORTED', 'CREATE CATALOG is not supported by the static catalog store')
    case 'DropCatalog':
      throw new EngineError('NOT_SUPPORTED', 'DROP CATALOG is not supported by the static catalog store')
    case 'SetAuthorization':
      throw unsupported(`setting an owner on a ${node.entityKind.toLowerCase()}`)
    case 'SetProperties':
      throw unsupported(`setting ${node.type === 'TABLE' ? 'table' : 'materialized view'} properties`)
    default: {
      const doing = words[node.kind]
      if (doing !== undefined) throw unsupported(doing)
      throw errorAt(input, node, 'NOT_SUPPORTED', `${wordsOf(node.kind)} is not supported`)
    }
  }
}
