import type { ErrorName } from '../../shared/error-table.ts'
import { errorAt } from '../analyzer/context.ts'
import type { StatementInput } from '../statement-input.ts'
import type { Property } from '../syntax/ast-definitions.ts'

const propertyErrors = {
  schema: 'INVALID_SCHEMA_PROPERTY',
  table: 'INVALID_TABLE_PROPERTY',
  view: 'INVALID_VIEW_PROPERTY',
  'materialized view': 'INVALID_MATERIALIZED_VIEW_PROPERTY',
  column: 'INVALID_COLUMN_PROPERTY',
} as const satisfies Record<string, ErrorName>

/** Refuses properties: no object here has any. */
export function refuseProperties(
  input: StatementInput,
  catalog: string,
  what: keyof typeof propertyErrors,
  properties: readonly Property[],
): void {
  const [first] = properties
  if (first === undefined) return
  const name = first.name.value.toLowerCase()
  throw errorAt(input, first, propertyErrors[what], `Catalog '${catalog}' ${what} property '${name}' does not exist`)
}

/** Checks the table properties. Tables are stored as Parquet, so `format` may only say so. */
export function checkTableProperties(input: StatementInput, catalog: string, properties: readonly Property[]): void {
  refuseProperties(
    input,
    catalog,
    'table',
    properties.filter(({ name }) => name.value.toLowerCase() !== 'format'),
  )
  for (const property of properties) {
    const { value } = property
    if (value === undefined) continue
    const text = value.kind === 'StringLiteral' ? value.value : undefined
    if (text?.toUpperCase() === 'PARQUET') continue
    const shown = text === undefined ? 'the value' : `['${text}']`
    const message = `Unable to set catalog '${catalog}' table property 'format' to ${shown}: Invalid value. Valid values: [PARQUET]`
    throw errorAt(input, property, 'INVALID_TABLE_PROPERTY', message)
  }
}
