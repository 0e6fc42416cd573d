/** Removes keys whose value is undefined or null: answers leave such keys out. */
export function withoutAbsent(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined && one !== null))
}
