/** Converts data of one version to the next version. */
export type Upcaster = (data: unknown) => unknown

/** The upcasters of one event type, each by the version that it takes. */
export type Upcasters = Readonly<Record<number, Upcaster>>

export interface StoredVersion {
  readonly type: string
  /** The version that the data was stored with; data of a later program stays as it is. */
  readonly version: number
  /** The newest version that this program knows. */
  readonly current: number
}

/**
 * Converts stored data to the current version, one version at a time.
 * @throws Error when no upcaster takes a version
 */
export function upcast({ type, version, current }: StoredVersion, data: unknown, upcasters: Upcasters = {}): unknown {
  let raised = data
  for (let v = version; v < current; v++) {
    const next = upcasters[v]
    if (!next) throw new Error(`There is no upcaster for ${type} version ${v}`)
    raised = next(raised)
  }
  return raised
}
