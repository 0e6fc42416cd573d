/** A tree without its spans, which must be equal after printing and parsing again. */
export function withoutSpans(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withoutSpans)
  if (typeof node !== 'object' || node === null) return node
  return Object.fromEntries(
    Object.entries(node)
      .filter(([name]) => name !== 'span')
      .map(([name, value]) => [name, withoutSpans(value)]),
  )
}
