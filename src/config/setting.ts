import { z } from 'zod'
import { isAddressRange } from '../shared/address-ranges.ts'

/** How a setting's text (a flag or a variable) becomes its value. */
export type SettingKind = 'text' | 'integer' | 'flag' | 'list' | 'bytes' | 'duration'

/** The properties of a setting beside its zod type. */
export interface SettingMeta {
  readonly kind: SettingKind
  readonly doc: string
  /** Environment variable; made from the key when absent. */
  readonly env?: string
  /** Never shown in help, logs or error messages. */
  readonly secret?: boolean
  /** The default as the documentation writes it, if the value itself would not be clear. */
  readonly shownDefault?: string
}

/** Registry of all settings: zod keeps the schema, this the documentation. */
export const settings = z.registry<SettingMeta>()

type Extras = Omit<SettingMeta, 'kind' | 'doc'>

export function textSetting(doc: string, fallback: string, extras: Extras = {}) {
  return z
    .string()
    .min(1)
    .default(fallback)
    .register(settings, { kind: 'text', doc, ...extras })
}

export function optionalText(doc: string, extras: Extras = {}) {
  return z
    .string()
    .min(1)
    .optional()
    .register(settings, { kind: 'text', doc, ...extras })
}

/** OpenTelemetry's form of several values in one text, `name=value,…`; special characters are percent-encoded. */
export function namedTexts(doc: string, extras: Extras = {}) {
  return z
    .string()
    .min(1)
    .refine((value) => parseNamedValues(value) !== undefined, {
      error: 'must be name=value pairs, separated by commas',
    })
    .optional()
    .register(settings, { kind: 'text', doc, ...extras })
}

/** The values of a {@link namedTexts} setting; empty if it is absent. */
export function namedValues(value: string | undefined): Readonly<Record<string, string>> {
  return (value === undefined ? undefined : parseNamedValues(value)) ?? {}
}

/** Parses the text; undefined if it does not have that form. */
function parseNamedValues(value: string): Record<string, string> | undefined {
  const parts = value.split(',').flatMap((part) => (part.trim() === '' ? [] : [part]))
  const pairs: [string, string][] = []
  for (const part of parts) {
    const at = part.indexOf('=')
    const name = part.slice(0, at).trim()
    if (at < 0 || name === '') return undefined
    try {
      pairs.push([decodeURIComponent(name), decodeURIComponent(part.slice(at + 1).trim())])
    } catch {
      return undefined
    }
  }
  return Object.fromEntries(pairs)
}

/** The HTTP address of a server, with its path, query and credentials. */
export function httpAddress(doc: string, extras: Extras = {}) {
  return z
    .string()
    .refine((value) => URL.canParse(value) && /^https?:$/.test(new URL(value).protocol), {
      error: 'must be an address of the form http://host:port',
    })
    .optional()
    .register(settings, { kind: 'text', doc, ...extras })
}

export function oneOf<const T extends readonly [string, ...string[]]>(doc: string, values: T, fallback: T[number]) {
  const schema = z.enum(values).default(fallback as never)
  return schema.register(settings, { kind: 'text', doc: `${doc}: ${values.join(', ')}` })
}

export function optionalOneOf<const T extends readonly [string, ...string[]]>(doc: string, values: T) {
  return z
    .enum(values)
    .optional()
    .register(settings, { kind: 'text', doc: `${doc}: ${values.join(', ')}` })
}

export function integerSetting(
  doc: string,
  fallback: number,
  range: { min: number; max: number },
  extras: Extras = {},
) {
  const schema = z.int().min(range.min).max(range.max).default(fallback)
  return schema.register(settings, { kind: 'integer', doc, ...extras })
}

/** The same without a default: absent means no limit. */
export function optionalInteger(doc: string, range: { min: number; max: number }) {
  return z.int().min(range.min).max(range.max).optional().register(settings, { kind: 'integer', doc })
}

export function flag(doc: string, extras: Extras = {}) {
  return z
    .boolean()
    .default(false)
    .register(settings, { kind: 'flag', doc, ...extras })
}

export function list(doc: string, extras: Extras = {}) {
  return z
    .array(z.string().min(1))
    .readonly()
    .default([])
    .register(settings, { kind: 'list', doc, ...extras })
}

export function listWith(doc: string, fallback: readonly string[]) {
  return z
    .array(z.string().min(1))
    .readonly()
    .default([...fallback])
    .register(settings, { kind: 'list', doc })
}

/** A list of addresses and address ranges. */
export function rangeList(doc: string, extras: Extras = {}) {
  return z
    .array(z.string())
    .refine((ranges) => ranges.every(isAddressRange), { error: 'must be addresses, or ranges such as 10.0.0.0/8' })
    .readonly()
    .default([])
    .register(settings, { kind: 'list', doc, ...extras })
}

export function listOf<const T extends readonly [string, ...string[]]>(doc: string, values: T) {
  return z
    .array(z.enum(values))
    .readonly()
    .default([])
    .register(settings, { kind: 'list', doc: `${doc}: ${values.join(', ')}` })
}

/** A size in whole bytes. As text also with a unit: `64kB`, `1MB`, `10GB` (of 1024). */
export function bytes(doc: string, fallback: number) {
  const schema = z.int().min(1).default(fallback)
  return schema.register(settings, { kind: 'bytes', doc, shownDefault: shownBytes(fallback) })
}

/** A duration in whole milliseconds. As text also with a unit: `250ms`, `5s`, `2m`, `1h`, `1d`. */
export function duration(doc: string, fallback: number, extras: Extras = {}) {
  const schema = z.int().min(0).default(fallback)
  return schema.register(settings, { kind: 'duration', doc, shownDefault: shownDuration(fallback), ...extras })
}

/** The same without a default: absent means no limit. */
export function optionalBytes(doc: string) {
  return z.int().min(1).optional().register(settings, { kind: 'bytes', doc })
}

export function optionalDuration(doc: string) {
  return z.int().min(0).optional().register(settings, { kind: 'duration', doc })
}

const BYTE_UNITS = { B: 1, kB: 1024, MB: 1024 ** 2, GB: 1024 ** 3, TB: 1024 ** 4 } as const
const DURATION_UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/**
 * The value that a flag's or a variable's text means. A text that does not fit the kind stays unchanged, and the schema
 * then reports the error.
 */
export function fromText(kind: SettingKind, value: string): unknown {
  switch (kind) {
    case 'text':
      return value
    case 'integer':
      return /^-?\d+$/.test(value) ? Number(value) : value
    case 'flag':
      return value === 'true' || value === '1' ? true : value === 'false' || value === '0' ? false : value
    case 'list':
      return value
        .split(',')
        .map((one) => one.trim())
        .filter((one) => one !== '')
    case 'bytes':
      return withUnit(value, BYTE_UNITS)
    case 'duration':
      return withUnit(value, DURATION_UNITS)
  }
}

function withUnit(value: string, units: Readonly<Record<string, number>>): unknown {
  const match = /^(\d+)\s*([A-Za-z]*)$/.exec(value)
  const factor = match?.[2] === '' ? 1 : units[match?.[2] ?? '']
  return match && factor !== undefined ? Number(match[1]) * factor : value
}

function shownBytes(value: number): string {
  return shown(value, BYTE_UNITS)
}

function shownDuration(value: number): string {
  return shown(value, DURATION_UNITS)
}

function shown(value: number, units: Readonly<Record<string, number>>): string {
  const fitting = Object.entries(units).filter(([, factor]) => value > 0 && value % factor === 0)
  const [unit, factor] = fitting.at(-1) ?? ['', 1]
  return `${value / factor}${unit}`
}
