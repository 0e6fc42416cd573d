const FIRST_MS = Date.parse('0001-01-01T00:00:00.000Z')
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z')

/**
 * A time in a form that Postgres can read, in UTC. Postgres knows neither all offsets nor all years of ISO 8601. A time
 * outside its range becomes the nearest one within, which is before or after all queries as well.
 * @param text ISO 8601 with a zone
 * @returns undefined when the text is no time
 */
export function storableTime(text: string): string | undefined {
  const milliseconds = Date.parse(text)
  return Number.isNaN(milliseconds)
    ? undefined
    : new Date(Math.min(Math.max(milliseconds, FIRST_MS), LAST_MS)).toISOString()
}
