import type { Expression, StringLiteral } from './ast.ts'
import type { Identifier, Node, QualifiedName } from './ast-node.ts'
import type { DataType } from './ast-types.ts'

export interface FunctionSpecification extends Node<'FunctionSpecification'> {
  readonly name: QualifiedName
  readonly parameters: readonly ParameterDeclaration[]
  readonly returns: ReturnsClause
  readonly characteristics: readonly RoutineCharacteristic[]
  readonly statement: ControlStatement
}

export interface ReturnsClause extends Node<'ReturnsClause'> {
  readonly type: DataType
}

export interface ParameterDeclaration extends Node<'ParameterDeclaration'> {
  readonly name: Identifier | undefined
  readonly type: DataType
}

export type RoutineCharacteristic =
  | LanguageCharacteristic
  | DeterministicCharacteristic
  | NullInputCharacteristic
  | SecurityCharacteristic
  | CommentCharacteristic

export interface LanguageCharacteristic extends Node<'LanguageCharacteristic'> {
  readonly language: Identifier
}
export interface DeterministicCharacteristic extends Node<'DeterministicCharacteristic'> {
  readonly deterministic: boolean
}
/** CALLED ON NULL INPUT; RETURNS NULL ON NULL INPUT if not `calledOnNull`. */
export interface NullInputCharacteristic extends Node<'NullInputCharacteristic'> {
  readonly calledOnNull: boolean
}
export interface SecurityCharacteristic extends Node<'SecurityCharacteristic'> {
  readonly security: 'DEFINER' | 'INVOKER'
}
export interface CommentCharacteristic extends Node<'CommentCharacteristic'> {
  readonly comment: StringLiteral
}

export type ControlStatement =
  | ReturnStatement
  | AssignmentStatement
  | CaseStatement
  | IfStatement
  | IterateStatement
  | LeaveStatement
  | CompoundStatement
  | LoopStatement
  | WhileStatement
  | RepeatStatement

export interface ReturnStatement extends Node<'ReturnStatement'> {
  readonly value: Expression
}
export interface AssignmentStatement extends Node<'AssignmentStatement'> {
  readonly target: Identifier
  readonly value: Expression
}
/** A simple CASE if it has an operand, otherwise a searched CASE. */
export interface CaseStatement extends Node<'CaseStatement'> {
  readonly operand: Expression | undefined
  readonly whenClauses: readonly ConditionalBlock[]
  readonly elseClause: readonly ControlStatement[] | undefined
}
/** IF and ELSEIFs: at least one branch. */
export interface IfStatement extends Node<'IfStatement'> {
  readonly branches: readonly ConditionalBlock[]
  readonly elseClause: readonly ControlStatement[] | undefined
}
export interface ConditionalBlock extends Node<'ConditionalBlock'> {
  readonly condition: Expression
  readonly statements: readonly ControlStatement[]
}
export interface IterateStatement extends Node<'IterateStatement'> {
  readonly label: Identifier
}
export interface LeaveStatement extends Node<'LeaveStatement'> {
  readonly label: Identifier
}
export interface CompoundStatement extends Node<'CompoundStatement'> {
  readonly variables: readonly VariableDeclaration[]
  readonly statements: readonly ControlStatement[]
}
export interface VariableDeclaration extends Node<'VariableDeclaration'> {
  readonly names: readonly Identifier[]
  readonly type: DataType
  readonly defaultValue: Expression | undefined
}
export interface LoopStatement extends Node<'LoopStatement'> {
  readonly label: Identifier | undefined
  readonly statements: readonly ControlStatement[]
}
export interface WhileStatement extends Node<'WhileStatement'> {
  readonly label: Identifier | undefined
  readonly condition: Expression
  readonly statements: readonly ControlStatement[]
}
export interface RepeatStatement extends Node<'RepeatStatement'> {
  readonly label: Identifier | undefined
  readonly statements: readonly ControlStatement[]
  readonly condition: Expression
}
