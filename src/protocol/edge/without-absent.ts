/** A value whose keys may be missing where they could be undefined or null. */
type WithoutAbsent<T> = {
  [K in keyof T as undefined extends T[K] ? never : null extends T[K] ? never : K]: T[K]
} & {
  [K in keyof T as undefined extends T[K] ? K : null extends T[K] ? K : never]?: NonNullable<T[K]>
}

/** Removes keys whose value is undefined or null: answers leave such keys out. */
export function withoutAbsent<T extends object>(value: T): WithoutAbsent<T> {
  return Object.fromEntries(
    Object.entries(value).filter(([, one]) => one !== undefined && one !== null),
  ) as WithoutAbsent<T>
}
