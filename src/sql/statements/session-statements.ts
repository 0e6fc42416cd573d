import { EngineError } from '../../shared/engine-error.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { accessDenied, accessOf } from '../access-control.ts'
import type { SessionChange } from '../front-end.ts'
import { canonicalZone, zoneOfOffset } from '../../duckdb/time-zones.ts'
import type { Expression, FunctionCall } from '../syntax/ast.ts'
import type { Identifier } from '../syntax/ast-node.ts'
import { childrenOf, type AnyNode } from '../syntax/tree.ts'
import type {
  SessionStatement,
  SetPath,
  SetRole,
  SetSession,
  SetTimeZone,
  ResetSession,
  Use,
} from '../syntax/ast-statements.ts'
import type { Query, SessionPropertyValue } from '../syntax/ast-query.ts'
import type { Span } from '../syntax/span.ts'
import { printExpression } from '../syntax/printer.ts'
import { canCoerce } from '../types/coercion.ts'
import { BIGINT, BOOLEAN, DOUBLE, INTEGER, VARCHAR } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { literalValue } from './constant-values.ts'
import { complaintAbout, sessionProperty, type ActingProperty } from '../session/session-properties.ts'
import type { SessionProperty } from '../session/session-property-table.ts'
import { errorAt } from '../analyzer/context.ts'
import type { StatementInput } from '../statement-input.ts'

/** The session changes that the client must remember after USE, SET and RESET. */
export interface SessionEffect {
  readonly updateType: string
  readonly changes: readonly SessionChange[]
}

export async function useSchema(input: StatementInput, node: Use): Promise<SessionEffect> {
  const { session, metadata } = input
  const named = node.catalog?.value.toLowerCase()
  const catalog = named ?? session.catalog
  const schema = node.schema.value.toLowerCase()
  if (catalog === undefined) {
    throw errorAt(input, node, 'MISSING_CATALOG_NAME', 'Catalog must be specified when session catalog is not set')
  }
  if (!metadata.catalogs().includes(catalog)) {
    throw new EngineError('CATALOG_NOT_FOUND', `Catalog '${catalog}' not found`)
  }
  const access = accessOf(session)
  if (access?.showsCatalog(catalog) === false) throw accessDenied(`Cannot access catalog ${catalog}`)
  if (!(await metadata.schemas(catalog)).includes(schema)) {
    throw new EngineError('NOT_FOUND', `Schema does not exist: ${catalog}.${schema}`)
  }
  if (access?.showsSchema(catalog, schema) === false) throw accessDenied(`Cannot access schema: ${catalog}.${schema}`)
  const setCatalog: readonly SessionChange[] = named === undefined ? [] : [{ kind: 'SetCatalog', catalog }]
  return { updateType: 'USE', changes: [...setCatalog, { kind: 'SetSchema', schema }] }
}

export function sessionEffect(input: StatementInput, node: SessionStatement): SessionEffect {
  switch (node.kind) {
    case 'SetSession':
      return { updateType: 'SET SESSION', changes: [setSession(input, node)] }
    case 'ResetSession': {
      const name = isZoneProperty(node) ? ZONE_PROPERTY : (propertyOf(input, node)?.name ?? fail(input, node))
      return { updateType: 'RESET SESSION', changes: [{ kind: 'ClearSession', name }] }
    }
    case 'SetTimeZone':
      return { updateType: 'SET TIME ZONE', changes: [setTimeZone(node)] }
    case 'SetPath':
      return { updateType: 'SET PATH', changes: [setPath(input, node)] }
    case 'SetRole':
      return { updateType: 'SET ROLE', changes: [setRole(input, node)] }
    case 'SetSessionAuthorization': {
      const user = node.user.value
      requireCapability(input, 'SESSION_AUTHORIZATION', 'SET SESSION AUTHORIZATION')
      requireNoTransaction(input)
      const original = input.session.originalUser ?? input.session.user
      if (user !== original && !input.session.mayBecome?.(user)) {
        const message = `Access Denied: User ${original} cannot impersonate user ${user}`
        throw new EngineError('PERMISSION_DENIED', message)
      }
      return { updateType: 'SET SESSION AUTHORIZATION', changes: [{ kind: 'SetAuthorizationUser', user }] }
    }
    case 'ResetSessionAuthorization':
      requireCapability(input, 'SESSION_AUTHORIZATION', 'RESET SESSION AUTHORIZATION')
      requireNoTransaction(input)
      return { updateType: 'RESET SESSION AUTHORIZATION', changes: [{ kind: 'ResetAuthorizationUser' }] }
    default:
      return unreachable(node)
  }
}

function requireCapability(input: StatementInput, capability: string, statement: string): void {
  if (input.session.clientCapabilities.includes(capability)) return
  throw new EngineError('NOT_SUPPORTED', `${statement} not supported by client`)
}

function requireNoTransaction({ session }: StatementInput): void {
  if (session.transactionId === undefined || session.transactionId === 'NONE') return
  throw new EngineError('GENERIC_USER_ERROR', "Can't set authorization user in the middle of a transaction")
}

type NamesProperty = SetSession | ResetSession | SessionPropertyValue

/** The node whose position errors show; for SET SESSION Trino shows the position of the value. */
function faultyNode(node: NamesProperty): { readonly span: Span } {
  return node.kind === 'SetSession' ? node.value : node
}

/** The property that a statement names; undefined if there is no such property. */
function propertyOf(input: StatementInput, node: NamesProperty): SessionProperty | undefined {
  const parts = node.name.parts.map((part) => part.value.toLowerCase())
  if (parts.length > 2) {
    throw errorAt(input, node, 'INVALID_SESSION_PROPERTY', `Invalid session property '${parts.join('.')}'`)
  }
  if (parts.length === 2) {
    const catalog = parts[0]!
    if (!input.metadata.catalogs().includes(catalog)) {
      throw errorAt(input, faultyNode(node), 'CATALOG_NOT_FOUND', `Catalog '${catalog}' not found`)
    }
    // Catalogs have no properties of their own.
    return undefined
  }
  return sessionProperty(parts[0]!)
}

function fail(input: StatementInput, node: NamesProperty): never {
  const name = node.name.parts.map((part) => part.value.toLowerCase()).join('.')
  throw errorAt(input, faultyNode(node), 'INVALID_SESSION_PROPERTY', `Session property '${name}' does not exist`)
}

const propertyTypes = { boolean: BOOLEAN, bigint: BIGINT, integer: INTEGER, double: DOUBLE, varchar: VARCHAR } as const

/**
 * The session of a query with its WITH SESSION clause, whose values override those of the client.
 * @returns also `set`, the values in the clause, and `own`, those that take effect
 */
export function withSession(
  input: StatementInput,
  query: Query,
): {
  readonly session: StatementInput['session']
  readonly set: Readonly<Record<string, string>>
  readonly own: Readonly<Record<string, string>>
} {
  if (query.sessionProperties.length === 0) return { session: input.session, set: {}, own: {} }
  const properties = new Map<string, string>()
  for (const node of query.sessionProperties) {
    const { name, value } = isZoneProperty(node) ? setZone(input, node) : setSession(input, node)
    if (properties.has(name)) {
      throw errorAt(input, node, 'INVALID_SESSION_PROPERTY', `Session property ${name} already set`)
    }
    properties.set(name, value)
  }
  const { session } = input
  const set = Object.fromEntries(properties)
  // Properties that the server's rules fix cannot be changed by a statement; the attempt causes a warning.
  const fixed = session.propertyRules?.fixed ?? []
  const own = Object.fromEntries([...properties].filter(([name]) => !fixed.includes(name)))
  const timeZone = own[ZONE_PROPERTY] ?? session.timeZone
  return { session: { ...session, timeZone, properties: { ...session.properties, ...own } }, own, set }
}

function setZone(input: StatementInput, node: SessionPropertyValue): PropertyChange {
  const zone = node.value.kind === 'StringLiteral' ? canonicalZone(node.value.value) : undefined
  if (zone === undefined) {
    const message = `Time zone not supported: ${printExpression(node.value)}`
    throw errorAt(input, node, 'INVALID_SESSION_PROPERTY', message)
  }
  return { kind: 'SetSession', name: ZONE_PROPERTY, value: zone }
}

type PropertyChange = Extract<SessionChange, { kind: 'SetSession' }>

function setSession(input: StatementInput, node: SetSession | SessionPropertyValue): PropertyChange {
  if (isZoneProperty(node)) return { kind: 'SetSession', name: ZONE_PROPERTY, value: zoneOf(node.value) }
  const { parts } = node.name
  const [name, catalog] = parts.map((part) => part.value.toLowerCase()).reverse()
  if (parts.length <= 2) accessOf(input.session)?.checkSetProperty(catalog, name!)
  const property = propertyOf(input, node) ?? fail(input, node)
  const constant = literalValue(node.value)
  const unable = `Unable to set session property '${property.name}' to '${printExpression(node.value)}'`
  if (constant === undefined) {
    const why = notConstant(node.value)
    if (why !== undefined) throw new EngineError('INVALID_SESSION_PROPERTY', `${unable}: ${why}`)
    const message = `A session property is set to a literal, not to ${printExpression(node.value)}`
    throw errorAt(input, node.value, 'NOT_SUPPORTED', message)
  }
  const type = propertyTypes[property.type]
  if (!canCoerce(constant.type, type)) {
    const why = `Cannot cast type ${typeName(constant.type)} to ${typeName(type)}`
    throw new EngineError('INVALID_SESSION_PROPERTY', `${unable}: ${why}`)
  }
  if (constant.text === undefined) {
    throw new EngineError('INVALID_SESSION_PROPERTY', `${unable}: Session property value must not be null`)
  }
  const complaint = complaintAbout(property, constant.text)
  if (complaint !== undefined) throw errorAt(input, node.value, 'INVALID_SESSION_PROPERTY', complaint)
  return { kind: 'SetSession', name: property.name, value: constant.text }
}

/** The reason why an expression is not constant; undefined if it is. */
function notConstant(node: AnyNode): string | undefined {
  if (node.kind === 'SubqueryExpression') return 'Constant expression cannot contain a subquery'
  if (node.kind === 'Identifier') return `Column '${printExpression(node as Identifier)}' cannot be resolved`
  // Names of functions and types are not columns.
  if (node.kind.endsWith('DataType')) return undefined
  const children = node.kind === 'FunctionCall' ? (node as FunctionCall).arguments : childrenOf(node)
  for (const child of children) {
    const why = notConstant(child)
    if (why !== undefined) return why
  }
  return undefined
}

/** The session property that carries the zone between statements. */
const ZONE_PROPERTY = 'time_zone_id' satisfies ActingProperty

/** Whether a statement names the zone property. It can be set by name, although SHOW SESSION does not list it. */
function isZoneProperty({ name }: NamesProperty): boolean {
  return name.parts.length === 1 && name.parts[0]!.value.toLowerCase() === ZONE_PROPERTY
}

function setTimeZone(node: SetTimeZone): SessionChange {
  if (node.timeZone === undefined) return { kind: 'ClearSession', name: ZONE_PROPERTY }
  return { kind: 'SetSession', name: ZONE_PROPERTY, value: zoneOf(node.timeZone) }
}

function zoneOf(node: Expression): string {
  if (node.kind === 'StringLiteral') {
    const zone = canonicalZone(node.value)
    if (zone === undefined) throw new EngineError('NOT_SUPPORTED', `Time zone not supported: ${node.value}`)
    return zone
  }
  if (node.kind === 'IntervalLiteral') {
    const minutes = offsetMinutes(node)
    if (minutes !== undefined) {
      if (!Number.isInteger(minutes)) {
        throw new EngineError(
          'INVALID_FUNCTION_ARGUMENT',
          'Invalid time zone offset interval: interval contains seconds',
        )
      }
      if (Math.abs(minutes) > 14 * 60) {
        throw new EngineError('INVALID_FUNCTION_ARGUMENT', `Invalid offset minutes ${minutes}`)
      }
      return zoneOfOffset(minutes)
    }
  }
  const constant = literalValue(node)
  const type = constant === undefined ? 'another' : typeName(constant.type)
  throw new EngineError(
    'TYPE_MISMATCH',
    `Expected expression of varchar or interval day-time type, but '${printExpression(node)}' has ${type} type`,
  )
}

const secondsPerUnit = { DAY: 86_400, HOUR: 3_600, MINUTE: 60, SECOND: 1 } as const

/** The minutes of `INTERVAL '1' HOUR` or `INTERVAL '05:30' HOUR TO MINUTE`; undefined for years and months. */
function offsetMinutes(node: Extract<Expression, { kind: 'IntervalLiteral' }>): number | undefined {
  if (node.startField === 'YEAR' || node.startField === 'MONTH') return undefined
  const units = ['DAY', 'HOUR', 'MINUTE', 'SECOND'] as const
  const first = units.indexOf(node.startField)
  const match = /^[\t-\r ]*([+-]?)[\t-\r ]*(\d+(?:[\t-\r :]+\d+)*(?:\.\d+)?)[\t-\r ]*$/.exec(node.value)
  if (match === null) return undefined
  const seconds = match[2]!
    .split(/[\t-\r :]+/)
    .reduce((total, part, index) => total + Number(part) * secondsPerUnit[units[first + index] ?? 'SECOND'], 0)
  const isNegative = (match[1] === '-') !== (node.sign === 'NEGATIVE')
  return seconds === 0 ? 0 : (isNegative ? -seconds : seconds) / 60
}

function setPath(input: StatementInput, node: SetPath): SessionChange {
  requireCapability(input, 'PATH', 'SET PATH')
  const elements = node.path.map((element) => {
    const schema = element.schema.value
    if (element.catalog === undefined) {
      if (input.session.catalog === undefined) {
        const message = 'Catalog must be specified for each path element when session catalog is not set'
        throw errorAt(input, node, 'MISSING_CATALOG_NAME', message)
      }
      return schema
    }
    const catalog = element.catalog.value
    if (!input.metadata.catalogs().includes(catalog.toLowerCase())) {
      throw errorAt(input, element, 'CATALOG_NOT_FOUND', `Catalog '${catalog}' not found`)
    }
    return `${catalog}.${schema}`
  })
  return { kind: 'SetPath', path: elements.join(', ') }
}

/** SET ROLE. There are no roles here, so only ALL and NONE can be set. */
function setRole(input: StatementInput, node: SetRole): SessionChange {
  const catalog = node.catalog?.value.toLowerCase()
  if (catalog !== undefined) {
    if (!input.metadata.catalogs().includes(catalog)) {
      throw errorAt(input, node, 'CATALOG_NOT_FOUND', `Catalog '${catalog}' not found`)
    }
    throw errorAt(input, node, 'NOT_SUPPORTED', `Catalog '${catalog}' does not support role management`)
  }
  if (node.role !== undefined) {
    throw errorAt(input, node, 'ROLE_NOT_FOUND', `Role '${node.role.value.toLowerCase()}' does not exist`)
  }
  return { kind: 'SetRole', catalog: 'system', role: node.type }
}
