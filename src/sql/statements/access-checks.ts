import { shownName } from '../access-control.ts'
import type { Grant, Privileges } from '../syntax/ast-access.ts'
import type { SetAuthorization } from '../syntax/ast-definitions.ts'
import { OWNERSHIP, type ObjectChecks } from './object-checks.ts'
import { findSchema, schemaNamed } from './schema-checks.ts'

const PRIVILEGES = new Set(['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'CREATE', 'CREATE BRANCH'])

/** Checks GRANT, REVOKE and DENY. */
export async function checkPrivileges(
  checks: ObjectChecks,
  { object, privileges }: Pick<Grant, 'object'> & { readonly privileges: Privileges },
): Promise<void> {
  const doing = `${checks.node.kind.toLowerCase()} privilege ${privileges?.[0]?.value.toUpperCase() ?? 'SELECT'} on`
  if (object.entityKind === 'SCHEMA') {
    await findSchema(checks, object.name, false)
    const { catalog, schema } = schemaNamed(checks, object.name)
    checks.control?.checkOwnsSchema(catalog, schema, `${doing} schema`)
  } else {
    const { name, found } = await checks.find(object.name)
    if (found === undefined) throw checks.missingTable(name)
    checks.may(name, OWNERSHIP, `${doing} table`)
  }
  for (const { value } of privileges ?? []) {
    if (!PRIVILEGES.has(value.toUpperCase())) throw checks.error('INVALID_PRIVILEGE', `Unknown privilege: '${value}'`)
  }
}

export async function checkNewOwner(
  checks: ObjectChecks,
  { entityKind, name: written, principal }: SetAuthorization,
): Promise<void> {
  const kind = entityKind.toLowerCase()
  if (entityKind !== 'SCHEMA' && entityKind !== 'TABLE' && entityKind !== 'VIEW') return
  const owner = { kind: principal.type === 'ROLE' ? 'ROLE' : 'USER', name: principal.name.value } as const
  // There are no roles, so an owner cannot be a role.
  const refuseRole = (): void => {
    if (owner.kind !== 'ROLE') return
    throw checks.error('ROLE_NOT_FOUND', `Role '${owner.name.toLowerCase()}' does not exist`)
  }
  if (entityKind === 'SCHEMA') {
    await findSchema(checks, written, false)
    refuseRole()
    return checks.control?.checkGives(schemaNamed(checks, written), kind, owner)
  }
  const { name, found } = await checks.find(written)
  if (found === undefined || (entityKind === 'VIEW' && found.view === undefined)) {
    const what = entityKind === 'VIEW' ? 'View' : 'Table'
    throw checks.error('TABLE_NOT_FOUND', `${what} '${shownName(name)}' does not exist`)
  }
  refuseRole()
  checks.control?.checkGives(name, kind, owner)
}
