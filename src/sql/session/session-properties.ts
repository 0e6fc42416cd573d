import { trimmedNumber } from '../functions/blanks.ts'
import type { SessionContext } from '../session.ts'
import { acceptedProperties, actingProperties, type SessionProperty } from './session-property-table.ts'

// The session properties: what there is stands in the table beside this, what a session sets is read here and nowhere else.

type Acting = typeof actingProperties
export type ActingProperty = keyof Acting

type TypedValue<Type> = Type extends 'integer' | 'double'
  ? number
  : Type extends 'bigint'
    ? bigint
    : Type extends 'boolean'
      ? boolean
      : string

/** What reading a property gives: undefined only where its default is NULL. */
export type PropertyValue<Name extends ActingProperty> =
  TypedValue<Acting[Name]['type']> | (Acting[Name]['defaultValue'] extends string ? never : undefined)

const byName: ReadonlyMap<string, SessionProperty> = new Map(
  [
    ...Object.entries(actingProperties).map(([name, property]): SessionProperty => ({
      ...property,
      name,
      acts: true,
      rule: undefined,
    })),
    ...acceptedProperties.map(([name, defaultValue, type, description, rule]): SessionProperty => ({
      name,
      type,
      defaultValue: defaultValue === '' ? undefined : defaultValue,
      description,
      acts: false,
      rule,
      least: undefined,
      shown: true,
    })),
  ]
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map((property) => [property.name, property]),
)

/** All of them, by name. */
export function sessionProperties(): readonly SessionProperty[] {
  return [...byName.values()]
}

/** The property with this name, in lower case; undefined where there is none. */
export function sessionProperty(name: string): SessionProperty | undefined {
  return byName.get(name)
}

type Holder = Pick<SessionContext, 'properties'>

/** What the session sets a property to, as text; undefined where it sets nothing. Clients may send any text. */
export function settingOf(session: Holder, { name }: Pick<SessionProperty, 'name'>): string | undefined {
  return session.properties[name]
}

/** The value of a property in a session: its default where the session sets nothing, or what is no value of it. */
export function propertyValue<Name extends ActingProperty>(session: Holder, name: Name): PropertyValue<Name> {
  const { type, defaultValue, least } = byName.get(name)!
  const setting = settingOf(session, { name })
  const found = setting === undefined ? undefined : readers[type](setting)
  const fits = found !== undefined && (least === undefined || Number(found) >= least)
  const value = fits || defaultValue === undefined ? found : readers[type](defaultValue)
  return value as PropertyValue<Name>
}

function wholeNumber(text: string): bigint | undefined {
  const digits = trimmedNumber(text)
  return /^[+-]?\d+$/.test(digits) ? BigInt(digits.replace('+', '')) : undefined
}

/** Texts as values; undefined for a text that is none. */
const readers = {
  boolean: (text: string) => (/^(?:true|false)$/i.test(text) ? text.toLowerCase() === 'true' : undefined),
  integer: (text: string) => (wholeNumber(text) === undefined ? undefined : Number(wholeNumber(text))),
  bigint: (text: string) => wholeNumber(text),
  double: (text: string) =>
    /^[+-]?(?:Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)$/.test(trimmedNumber(text))
      ? Number(trimmedNumber(text))
      : undefined,
  varchar: (text: string) => text,
} as const satisfies Record<SessionProperty['type'], (text: string) => string | number | bigint | boolean | undefined>

const duration = /^[\t-\r ]*\d+(?:\.\d+)?[\t-\r ]*(?:ns|us|ms|s|m|h|d)[\t-\r ]*$/
const dataSize = /^[\t-\r ]*\d+(?:\.\d+)?[\t-\r ]*(?:B|kB|MB|GB|TB|PB)[\t-\r ]*$/

/** What is wrong with a value of the right type, in Trino's words; undefined where nothing is. */
export function complaintAbout({ name, rule }: SessionProperty, value: string): string | undefined {
  switch (rule) {
    case undefined:
      return undefined
    case 'duration':
      return duration.test(value) ? undefined : `duration is not a valid data duration string: ${value}`
    case 'data size':
      return dataSize.test(value) ? undefined : `size is not a valid data size string: ${value}`
    case 'power of 2':
      return isPowerOfTwo(BigInt(value)) ? undefined : `${name} must be a power of 2: ${value}`
    default:
      return rule.includes(value.toUpperCase())
        ? undefined
        : `Invalid value [${value}]. Valid values: [${rule.join(', ')}]`
  }
}

function isPowerOfTwo(value: bigint): boolean {
  return value > 0n && (value & (value - 1n)) === 0n
}
