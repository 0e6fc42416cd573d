import { EngineError } from '../../shared/engine-error.ts'
import type { Warning } from '../front-end.ts'
import type { SessionContext } from '../session.ts'
import { dataSizeOf, durationOf } from '../../shared/quantities.ts'
import { faultOfValue, sessionProperty } from './session-properties.ts'

/** Warning codes of our own: Trino has none for these, and codes of its plugins start higher. */
const WITHOUT_EFFECT = { code: 0x0000_ff01, name: 'SESSION_PROPERTY_WITHOUT_EFFECT' } as const
const BOUNDED = { code: 0x0000_ff02, name: 'SESSION_PROPERTY_BOUNDED' } as const

/** Limits of the names in a message, since a header may name a thousand properties. */
const MOST_NAMED = 20
const LONGEST_NAME = 100

/** The session properties that the client set itself. */
export function sentBy({
  properties,
  propertyRules,
}: Pick<SessionContext, 'properties' | 'propertyRules'>): Readonly<Record<string, string>> {
  if (!propertyRules) return properties
  return Object.fromEntries(Object.entries(properties).filter(([name]) => !propertyRules.given.includes(name)))
}

/** The warnings for properties that a client sets in its session. */
export function warningsOfSetting(
  set: Readonly<Record<string, string>>,
  session: Pick<SessionContext, 'properties' | 'propertyRules' | 'bounds'>,
): readonly Warning[] {
  const names = Object.keys(set)
  return [...withoutEffect(names), ...beyondBounds(set, session.bounds), ...withoutPower(names, session)]
}

/** Warnings for properties that the server's rules have fixed. */
export function withoutPower(
  names: readonly string[],
  { properties, propertyRules }: Pick<SessionContext, 'properties' | 'propertyRules'>,
): readonly Warning[] {
  const fixed = names.filter((name) => propertyRules?.fixed.includes(name))
  return fixed.map((name) => ({
    warningCode: BOUNDED,
    message: `Session property '${name}' is fixed here: ${properties[name] ?? ''} holds`,
  }))
}

/** Warnings for properties that have no effect here: Trino's properties without a counterpart, and unknown ones. */
function withoutEffect(names: readonly string[]): readonly Warning[] {
  const idle = names.filter((name) => !sessionProperty(name)?.acts)
  if (idle.length === 0) return []
  const named = idle.slice(0, MOST_NAMED).map((name) => `'${name.slice(0, LONGEST_NAME)}'`)
  const others = idle.length > named.length ? `, and ${idle.length - named.length} others` : ''
  const message =
    idle.length === 1
      ? `Session property ${named[0]} has no effect here`
      : `Session properties ${named.join(', ')}${others} have no effect here`
  return [{ warningCode: WITHOUT_EFFECT, message }]
}

/** Warnings for properties whose value exceeds the server's limit. */
function beyondBounds(
  properties: Readonly<Record<string, string>>,
  bounds: SessionContext['bounds'],
): readonly Warning[] {
  return Object.entries(bounds ?? {}).flatMap(([name, bound]) => {
    const text = properties[name]
    const asked = text === undefined ? undefined : (durationOf(text) ?? dataSizeOf(text))
    if (!asked || asked.amount <= bound.amount) return []
    return [{ warningCode: BOUNDED, message: `Session property '${name}' is bounded here: ${bound.shown} holds` }]
  })
}

/**
 * Checks that the session properties sent by the client are valid values.
 * @throws EngineError INVALID_SESSION_PROPERTY
 */
export function checkSent({ properties }: Pick<SessionContext, 'properties'>): void {
  for (const [name, text] of Object.entries(properties)) {
    const property = sessionProperty(name)
    const fault = property && faultOfValue(property, text)
    if (fault !== undefined) throw new EngineError('INVALID_SESSION_PROPERTY', fault)
  }
}
