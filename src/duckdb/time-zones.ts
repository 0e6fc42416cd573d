import { zoneNames } from './zone-names.ts'

const OFFSET = /^(?:(?:UTC|GMT|UT)?)([+-])(\d{1,2})(?::?(\d{2}))?$/
const MAX_OFFSET_MINUTES = 14 * 60

/**
 * Trino's id of a zone as a client or statement writes it: `Z`, `GMT` and `+00:00` are UTC, `GMT+2` and `+0200` are
 * `+02:00`; names must be written as in Trino. Undefined for any other text.
 */
export function canonicalZone(text: string): string | undefined {
  if (
    /^(?:Z|UTC|GMT|UT|UCT|Zulu|Greenwich|Universal|GMT0|Etc\/(?:UTC|GMT|UCT|Universal|Greenwich|GMT0|GMT[+-]0))$/.test(
      text,
    )
  )
    return 'UTC'
  const offset = OFFSET.exec(text)
  if (offset !== null) {
    const minutes = Number(offset[2]) * 60 + Number(offset[3] ?? 0)
    if (minutes > MAX_OFFSET_MINUTES || Number(offset[3] ?? 0) > 59) return undefined
    return zoneOfOffset(offset[1] === '-' ? -minutes : minutes)
  }
  return zoneNames.has(text) ? text : undefined
}

/** The id of a fixed offset: `+05:30`, and `UTC` for zero. */
export function zoneOfOffset(minutes: number): string {
  if (minutes === 0) return 'UTC'
  const size = Math.abs(minutes)
  return `${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}
