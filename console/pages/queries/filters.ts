import type { ShownZone } from '../../shell/time-zone.tsx'

/** A filter of the list: a parameter of `GET /v1/query`. */
export interface Filter {
  readonly name: string
  readonly label: string
  readonly kind: 'text' | 'time'
}

export const STATES = ['QUEUED', 'PLANNING', 'STARTING', 'RUNNING', 'FINISHING', 'FINISHED', 'FAILED'] as const

/** Filters that are shown at once; a list of states is shown before them. */
export const FILTERS: readonly Filter[] = [
  { name: 'user', label: 'User', kind: 'text' },
  { name: 'q', label: 'Text of the statement', kind: 'text' },
]

export const MORE_FILTERS: readonly Filter[] = [
  { name: 'since', label: 'Created since', kind: 'time' },
  { name: 'until', label: 'Created before', kind: 'time' },
  { name: 'app', label: 'App', kind: 'text' },
  { name: 'source', label: 'Source', kind: 'text' },
  { name: 'error', label: 'Error', kind: 'text' },
  { name: 'group', label: 'Group of the user', kind: 'text' },
  { name: 'resourceGroup', label: 'Resource group', kind: 'text' },
  { name: 'cluster', label: 'Cluster', kind: 'text' },
  { name: 'table', label: 'Table (catalog.schema.table)', kind: 'text' },
  { name: 'fingerprint', label: 'Fingerprint', kind: 'text' },
]

const TIMES = new Set(MORE_FILTERS.filter(({ kind }) => kind === 'time').map(({ name }) => name))
const NAMES = ['state', ...[...FILTERS, ...MORE_FILTERS].map(({ name }) => name)]

/** The filters of an address, without its other parameters. */
export function filtersIn(search: URLSearchParams): URLSearchParams {
  return new URLSearchParams([...search].filter(([name, value]) => NAMES.includes(name) && value !== ''))
}

/** The filters of a form; times of its fields are in the shown zone. */
export function filtersOf(form: FormData, zone: ShownZone): URLSearchParams {
  const given = NAMES.map((name) => [name, String(form.get(name) ?? '')] as const)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => [name, TIMES.has(name) ? instantOf(value, zone) : value])
  return new URLSearchParams(given)
}

/** The instant of a field of type `datetime-local`. */
function instantOf(value: string, zone: ShownZone): string {
  return new Date(zone === 'UTC' ? `${value}Z` : value).toISOString()
}

/** The text that a field of the form shows for a filter in the address. */
export function valueIn(search: URLSearchParams, name: string, zone: ShownZone): string {
  const value = search.get(name) ?? ''
  return TIMES.has(name) ? fieldTime(value, zone) : value
}

/** The text of an instant for a field of type `datetime-local`, to the minute. */
function fieldTime(instant: string, zone: ShownZone): string {
  if (Number.isNaN(Date.parse(instant))) return ''
  const at = new Date(instant)
  const shift = zone === 'UTC' ? 0 : at.getTimezoneOffset() * 60_000
  return new Date(at.getTime() - shift).toISOString().slice(0, 16)
}
