const FIRST_MS = Date.parse('0001-01-01T00:00:00.000Z')
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z')

/**
 * A time as Postgres reads it, in UTC: it knows neither all offsets of ISO 8601 nor all its years. One beyond is the nearest
 * within, before or after all queries as well.
 * @param text ISO 8601 with a zone
 * @returns undefined when it is no time
 */
export function storableTime(text: string): string | undefined {
  const milliseconds = Date.parse(text)
  return Number.isNaN(milliseconds)
    ? undefined
    : new Date(Math.min(Math.max(milliseconds, FIRST_MS), LAST_MS)).toISOString()
}
