/** Freezes a value and everything in it, in place. Only for plain data without cycles. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const below of Object.values(value)) deepFreeze(below)
    Object.freeze(value)
  }
  return value
}
