import { unreachable } from '../../shared/unreachable.ts'
import type {
  ConditionalBlock,
  ControlStatement,
  FunctionSpecification,
  ParameterDeclaration,
  RoutineCharacteristic,
} from './ast-routines.ts'
import { printIdentifier, printQualifiedName, printString, printType } from './print-names.ts'
import { phrase, type Printer } from './printing.ts'

export function printFunctionSpecification(printer: Printer, node: FunctionSpecification): string {
  return phrase(
    `FUNCTION ${printQualifiedName(node.name)} ${printParameters(node.parameters)}`,
    `RETURNS ${printType(node.returns.type)}`,
    ...node.characteristics.map(printCharacteristic),
    printControl(printer, node.statement),
  )
}

export function printParameters(parameters: readonly ParameterDeclaration[]): string {
  const list = parameters.map((parameter) =>
    phrase(parameter.name && printIdentifier(parameter.name), printType(parameter.type)),
  )
  return `(${list.join(', ')})`
}

function printCharacteristic(node: RoutineCharacteristic): string {
  switch (node.kind) {
    case 'LanguageCharacteristic':
      return `LANGUAGE ${printIdentifier(node.language)}`
    case 'DeterministicCharacteristic':
      return node.deterministic ? 'DETERMINISTIC' : 'NOT DETERMINISTIC'
    case 'NullInputCharacteristic':
      return node.calledOnNull ? 'CALLED ON NULL INPUT' : 'RETURNS NULL ON NULL INPUT'
    case 'SecurityCharacteristic':
      return `SECURITY ${node.security}`
    case 'CommentCharacteristic':
      return `COMMENT ${printString(node.comment)}`
    default:
      return unreachable(node)
  }
}

function printControl(printer: Printer, node: ControlStatement): string {
  const statements = (list: readonly ControlStatement[]): string =>
    list.map((statement) => `${printControl(printer, statement)};`).join(' ')
  const block = (branch: ConditionalBlock): string =>
    `${printer.expression(branch.condition)} THEN ${statements(branch.statements)}`
  const otherwise = (list: readonly ControlStatement[] | undefined): string | undefined =>
    list && `ELSE ${statements(list)}`
  const label = 'label' in node && node.label !== undefined ? printIdentifier(node.label) : ''
  const labelled = label === '' ? '' : `${label} :`
  switch (node.kind) {
    case 'ReturnStatement':
      return `RETURN ${printer.expression(node.value)}`
    case 'AssignmentStatement':
      return `SET ${printIdentifier(node.target)} = ${printer.expression(node.value)}`
    case 'CaseStatement': {
      const whens = node.whenClauses.map((branch) => `WHEN ${block(branch)}`)
      const operand = node.operand && printer.expression(node.operand)
      return phrase('CASE', operand, ...whens, otherwise(node.elseClause), 'END CASE')
    }
    case 'IfStatement':
      return phrase(`IF ${node.branches.map(block).join(' ELSEIF ')}`, otherwise(node.elseClause), 'END IF')
    case 'IterateStatement':
      return `ITERATE ${label}`
    case 'LeaveStatement':
      return `LEAVE ${label}`
    case 'CompoundStatement': {
      const variables = node.variables.map((variable) => {
        const value = variable.defaultValue && `DEFAULT ${printer.expression(variable.defaultValue)}`
        const names = variable.names.map(printIdentifier).join(', ')
        return `${phrase('DECLARE', names, printType(variable.type), value)};`
      })
      return phrase('BEGIN', ...variables, statements(node.statements), 'END')
    }
    case 'LoopStatement':
      return phrase(labelled, 'LOOP', statements(node.statements), 'END LOOP')
    case 'WhileStatement':
      return phrase(
        labelled,
        `WHILE ${printer.expression(node.condition)} DO`,
        statements(node.statements),
        'END WHILE',
      )
    case 'RepeatStatement':
      return phrase(
        labelled,
        'REPEAT',
        statements(node.statements),
        `UNTIL ${printer.expression(node.condition)} END REPEAT`,
      )
    default:
      return unreachable(node)
  }
}
