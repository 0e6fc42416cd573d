/** Absent, never null: what a body leaves out is no key of it. */
export function withoutAbsent(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined && one !== null))
}
