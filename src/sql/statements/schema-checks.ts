import type { QualifiedName } from '../syntax/ast-node.ts'
import type { RenameSchema } from '../syntax/ast-definitions.ts'
import type { ObjectChecks } from './object-checks.ts'

/** Completes the name of a schema from the session. @throws EngineError for a catalog that is missing or not there */
export function schemaNamed(
  checks: ObjectChecks,
  written: QualifiedName,
): { readonly catalog: string; readonly schema: string } {
  const { session, metadata } = checks.input
  const [schema, catalog = session.catalog] = written.parts.map((part) => part.value.toLowerCase()).reverse()
  if (catalog === undefined) {
    throw checks.error('MISSING_CATALOG_NAME', 'Catalog must be specified when session catalog is not set')
  }
  if (!metadata.catalogs().includes(catalog)) throw checks.error('CATALOG_NOT_FOUND', `Catalog '${catalog}' not found`)
  return { catalog, schema: schema! }
}

/** Whether the schema exists. A missing schema is refused unless `ifExists` allows it. */
export async function findSchema(checks: ObjectChecks, written: QualifiedName, ifExists: boolean): Promise<boolean> {
  const { catalog, schema } = schemaNamed(checks, written)
  const found = (await checks.input.metadata.schemas(catalog)).includes(schema)
  if (!found && !ifExists) throw checks.error('SCHEMA_NOT_FOUND', `Schema '${catalog}.${schema}' does not exist`)
  return found
}

export async function checkCreateSchema(
  checks: ObjectChecks,
  written: QualifiedName,
  notExists: boolean,
): Promise<void> {
  const { catalog, schema } = schemaNamed(checks, written)
  const found = await findSchema(checks, written, true)
  checks.control?.checkOwnsSchema(catalog, schema, 'create schema')
  if (found && !notExists) {
    throw checks.error('SCHEMA_ALREADY_EXISTS', `Schema '${catalog}.${schema}' already exists`)
  }
}

export async function checkDropSchema(
  checks: ObjectChecks,
  written: QualifiedName,
  { ifExists, cascade }: { readonly ifExists: boolean; readonly cascade: boolean },
): Promise<void> {
  if (!(await findSchema(checks, written, ifExists))) return
  const { catalog, schema } = schemaNamed(checks, written)
  if (!cascade && (await checks.input.metadata.tables(catalog, schema)).length > 0) {
    throw checks.error('SCHEMA_NOT_EMPTY', `Cannot drop non-empty schema '${schema}'`)
  }
  checks.control?.checkOwnsSchema(catalog, schema, 'drop schema')
}

export async function checkRenameSchema(checks: ObjectChecks, { source, target }: RenameSchema): Promise<void> {
  await findSchema(checks, source, false)
  const { catalog, schema } = schemaNamed(checks, source)
  const to = target.value.toLowerCase()
  if ((await checks.input.metadata.schemas(catalog)).includes(to)) {
    throw checks.error('SCHEMA_ALREADY_EXISTS', `Target schema '${catalog}.${to}' already exists`)
  }
  checks.control?.checkOwnsSchema(catalog, schema, 'rename schema from', ` to ${to}`)
}
