import type { Identifier, QualifiedName } from './ast-node.ts'
import type { RowDataTypeField } from './ast-types.ts'
import type { JsonTableColumn } from './ast-json.ts'
import { isSecretName } from './secret-names.ts'
import { childrenOf, type AnyNode } from './tree.ts'

/** Fields of statements that name the values below them. */
export interface Named {
  readonly name?: Identifier | QualifiedName
  readonly target?: Identifier | QualifiedName
  readonly names?: readonly Identifier[]
  readonly alias?: Identifier
  readonly aliases?: readonly Identifier[]
  readonly columns?: readonly Identifier[]
  readonly columnNames?: readonly Identifier[]
  readonly columnAliases?: readonly Identifier[]
  readonly arguments?: readonly AnyNode[]
  readonly parameters?: readonly AnyNode[]
  readonly expression?: AnyNode
  readonly statement?: AnyNode
}

/** Whether a type has a row field with a secret's name: `ROW(password varchar)`, also nested in other types. */
export function namesSecretField(node: AnyNode): boolean {
  if (node.kind === 'RowDataTypeField' && isSecretNamed((node as RowDataTypeField).name)) return true
  return childrenOf(node).some(namesSecretField)
}

export function namesSecretColumn(column: JsonTableColumn): boolean {
  return column.kind === 'JsonTableNestedColumns' ? column.columns.some(namesSecretColumn) : isSecretNamed(column.name)
}

export function isSecretNamed(name: Identifier | QualifiedName | undefined): boolean {
  return name !== undefined && (name.kind === 'Identifier' ? isSecretName(name.value) : lastIsSecret(name))
}

export function nameText(name: Identifier | QualifiedName | undefined): string {
  return name?.kind === 'Identifier' ? name.value : ''
}

export function lastIsSecret(name: Identifier | QualifiedName | undefined): boolean {
  if (name?.kind !== 'QualifiedName') return isSecretNamed(name)
  const last = name.parts.at(-1)
  return last !== undefined && isSecretName(last.value)
}

export function anyPart(name: Identifier | QualifiedName | undefined): boolean {
  return name?.kind === 'QualifiedName' ? name.parts.some(({ value }) => isSecretName(value)) : isSecretNamed(name)
}
