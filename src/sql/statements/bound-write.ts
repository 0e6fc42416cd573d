import type { ConnectorAbilities, ConnectorTable } from '../../connectors/spi/connector.ts'
import type { AnalyzedTable, TableChange } from '../../connectors/spi/table-writer.ts'
import { EngineError } from '../../shared/engine-error.ts'
import type { ErrorName } from '../../shared/error-table.ts'
import { qualify, type TableName } from '../analyzer/resolve.ts'
import type { BoundStatement, QueryType } from '../front-end.ts'
import type { StatementInput } from '../statement-input.ts'
import type { QualifiedName } from '../syntax/ast-node.ts'

export type BoundWrite = Extract<BoundStatement, { kind: 'write' }>

/** An ability that a statement needs, and Trino's words for what the connector cannot do without it. */
export interface NeededAbility {
  readonly ability: keyof ConnectorAbilities
  readonly doing: string
}

/** How IF [NOT] EXISTS and the like change the outcome. */
export interface Tolerance {
  readonly settled?: boolean
  readonly tolerated?: ErrorName
}

/** A write without rows. */
export function definition(catalog: string, updateType: string, change: TableChange, tolerance: Tolerance): BoundWrite {
  const queryType: QueryType = 'DATA_DEFINITION'
  return {
    kind: 'write',
    queryType,
    updateType,
    catalog,
    change,
    settled: false,
    columns: [],
    writes: [],
    warnings: [],
    ...tolerance,
  }
}

export async function findObject(
  input: StatementInput,
  written: QualifiedName,
): Promise<{ readonly name: TableName; readonly found: ConnectorTable | undefined; readonly exists: boolean }> {
  const name = qualify(written, input.session)
  const found = await input.metadata.table(name.catalog, name.schema, name.table)
  return { name, found, exists: found !== undefined }
}

/** The parts of a table that the connector compares before it takes rows. */
export function asAnalyzed({ id, columns }: ConnectorTable): AnalyzedTable {
  const visible = columns.filter(({ hidden }) => hidden !== true)
  return {
    ...(id !== undefined && { id }),
    columns: visible.map(({ name, type, nullable }) => ({ name, type, nullable })),
  }
}

/** Completes the name of a schema from the session. */
export function schemaName(
  input: StatementInput,
  name: QualifiedName,
): { readonly catalog: string; readonly schema: string } {
  const [schema, catalog] = name.parts.map((part) => part.value.toLowerCase()).reverse()
  return { schema: schema!, catalog: catalog ?? input.session.catalog! }
}

/**
 * Refuses statements that the connector of the catalog cannot make, and writes inside a transaction: no connector here
 * can roll them back.
 */
export function allow(input: StatementInput, catalog: string, { ability, doing }: NeededAbility): void {
  if (input.metadata.abilities(catalog)?.[ability] !== true) {
    throw new EngineError('NOT_SUPPORTED', `This connector does not support ${doing}`)
  }
  const { transactionId } = input.session
  if (transactionId !== undefined && transactionId !== 'NONE') {
    throw new EngineError('AUTOCOMMIT_WRITE_CONFLICT', `Catalog only supports writes using autocommit: ${catalog}`)
  }
}
