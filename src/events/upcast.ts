/** Data of one version as the next one has it. */
export type Upcaster = (data: unknown) => unknown

/** Of one event type, by the version that each takes. */
export type Upcasters = Readonly<Record<number, Upcaster>>

export interface StoredVersion {
  readonly type: string
  /** That it was stored with; data of a later program's is left as it is. */
  readonly version: number
  /** Of today. */
  readonly current: number
}

/**
 * Brings stored data up to the version of today, a version at a time.
 * @throws Error where no upcaster takes a version
 */
export function upcast({ type, version, current }: StoredVersion, data: unknown, upcasters: Upcasters = {}): unknown {
  let raised = data
  for (let v = version; v < current; v++) {
    const next = upcasters[v]
    if (!next) throw new Error(`No upcaster takes ${type} from version ${v}`)
    raised = next(raised)
  }
  return raised
}
