import { bytesOf, nanosOf, shownCount, shownDuration, shownSize } from './units.ts'

/** A duration of the REST interface in a unit that people read; the title has the exact text. */
export function Duration({ of }: { readonly of: string | undefined }) {
  const nanos = of === undefined ? undefined : nanosOf(of)
  return nanos === undefined ? <>{of}</> : <span title={of}>{shownDuration(nanos)}</span>
}

/** A size of the REST interface in a unit that people read; the title has the exact text. */
export function Size({ of }: { readonly of: string | undefined }) {
  const bytes = of === undefined ? undefined : bytesOf(of)
  return bytes === undefined ? <>{of}</> : <span title={of}>{shownSize(bytes)}</span>
}

/** A count with separators. */
export function Count({ of }: { readonly of: number | undefined }) {
  return <>{of === undefined ? '' : shownCount(of)}</>
}
