import type { Identifier, QualifiedName } from './ast-node.ts'
import type { RowDataTypeField } from './ast-types.ts'
import type { JsonTableColumn } from './ast-json.ts'
import { isSecretName } from './secret-names.ts'
import { childrenOf, type AnyNode } from './tree.ts'

/** The fields of a node that hold names, or the nodes that these names describe. */
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

/** Whether a column of JSON_TABLE has a secret's name, or one of its nested columns. */
export function namesSecretColumn(column: JsonTableColumn): boolean {
  return column.kind === 'JsonTableNestedColumns' ? column.columns.some(namesSecretColumn) : isSecretNamed(column.name)
}

/** Whether a name is a secret's. The last part of a qualified name decides. */
export function isSecretNamed(name: Identifier | QualifiedName | undefined): boolean {
  const last = name?.kind === 'QualifiedName' ? name.parts.at(-1) : name
  return last !== undefined && isSecretName(last.value)
}

/** Whether a part of a name is a secret's. */
export function hasSecretPart(name: Identifier | QualifiedName | undefined): boolean {
  return name?.kind === 'QualifiedName' ? name.parts.some(isSecretNamed) : isSecretNamed(name)
}

/** The text of an identifier; empty for a qualified name and without a name. */
export function nameText(name: Identifier | QualifiedName | undefined): string {
  return name?.kind === 'Identifier' ? name.value : ''
}
