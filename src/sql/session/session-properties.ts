import { trimmedNumber } from '../../duckdb/blanks.ts'
import type { SessionContext } from '../session.ts'
import { dataSizeOf, durationOf } from '../../shared/quantities.ts'
import { acceptedProperties, actingProperties, type SessionProperty } from './session-property-table.ts'

// The session properties. The table beside this file defines them; only this file reads a session's values.

type Acting = typeof actingProperties
export type ActingProperty = keyof Acting

type TypedValue<Type> = Type extends 'integer' | 'double'
  ? number
  : Type extends 'bigint'
    ? bigint
    : Type extends 'boolean'
      ? boolean
      : string

/** The type of a property's value; undefined only if its default is NULL. */
export type PropertyValue<Name extends ActingProperty> =
  | TypedValue<Acting[Name]['type']>
  | (Acting[Name]['defaultValue'] extends string ? never : undefined)

const byName: ReadonlyMap<string, SessionProperty> = new Map(
  [
    ...Object.entries(actingProperties).map(([name, property]): SessionProperty => ({
      ...property,
      name,
      acts: true,
    })),
    ...acceptedProperties.map(([name, defaultValue, type, description, rule]): SessionProperty => ({
      name,
      type,
      defaultValue: defaultValue === '' ? undefined : defaultValue,
      description,
      acts: false,
      rule,
      shown: true,
    })),
  ]
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map((property) => [property.name, property]),
)

/** All session properties, by name. */
export function sessionProperties(): readonly SessionProperty[] {
  return [...byName.values()]
}

/** The property with this name (lower case); undefined if there is none. */
export function sessionProperty(name: string): SessionProperty | undefined {
  return byName.get(name)
}

type Holder = Pick<SessionContext, 'properties'>

/** The text to which the session sets a property; undefined if it does not. Clients may send any text. */
export function settingOf(session: Holder, { name }: Pick<SessionProperty, 'name'>): string | undefined {
  return session.properties[name]
}

/** The value of a property in a session; its default if the session sets no value or an invalid one. */
export function propertyValue<Name extends ActingProperty>(session: Holder, name: Name): PropertyValue<Name> {
  const property = byName.get(name)!
  const { type, defaultValue } = property
  const setting = settingOf(session, property)
  const fits = setting !== undefined && faultOfValue(property, setting) === undefined
  const text = fits ? setting : defaultValue
  return (text === undefined ? undefined : readers[type](text)) as PropertyValue<Name>
}

function wholeNumber(text: string, bits: number): bigint | undefined {
  const digits = trimmedNumber(text)
  const number = /^[+-]?\d+$/.test(digits) ? BigInt(digits.replace('+', '')) : undefined
  return number !== undefined && BigInt.asIntN(bits, number) === number ? number : undefined
}

/** Parsers of property values; undefined for an invalid text. */
const readers = {
  boolean: (text: string) => (/^(?:true|false)$/i.test(text) ? text.toLowerCase() === 'true' : undefined),
  integer: (text: string) => (wholeNumber(text, 32) === undefined ? undefined : Number(wholeNumber(text, 32))),
  bigint: (text: string) => wholeNumber(text, 64),
  double: (text: string) =>
    /^[+-]?(?:Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)$/.test(trimmedNumber(text))
      ? Number(trimmedNumber(text))
      : undefined,
  varchar: (text: string) => text,
} as const satisfies Record<SessionProperty['type'], (text: string) => string | number | bigint | boolean | undefined>

/** The error in a property value from a client or a rule; undefined if the value is valid. */
export function faultOfValue(property: SessionProperty, text: string): string | undefined {
  const { name, type } = property
  if (readers[type](text) === undefined) return `Session property '${name}' is invalid: '${text}' is no ${type}`
  return complaintAbout(property, text)
}

/** The error in a value of the right type, in Trino's words; undefined if the value is valid. */
export function complaintAbout({ name, rule, type }: SessionProperty, value: string): string | undefined {
  if (typeof rule === 'number')
    return Number(readers[type](value)) >= rule ? undefined : `${name} must be equal or greater than ${rule}`
  switch (rule) {
    case undefined:
      return undefined
    case 'duration':
      return durationOf(value) ? undefined : `duration is not a valid data duration string: ${value}`
    case 'data size':
      return dataSizeOf(value) ? undefined : `size is not a valid data size string: ${value}`
    case 'power of 2':
      return isPowerOfTwo(BigInt(value.trim())) ? undefined : `${name} must be a power of 2: ${value}`
    case 'part of 1':
      return Number(value) >= 0 && Number(value) <= 1
        ? undefined
        : `${name} must be in the range [0.00, 1.00]: ${Number(value).toFixed(2)}`
    default:
      return rule.includes(value.toUpperCase())
        ? undefined
        : `Invalid value [${value}]. Valid values: [${rule.join(', ')}]`
  }
}

function isPowerOfTwo(value: bigint): boolean {
  return value > 0n && (value & (value - 1n)) === 0n
}
