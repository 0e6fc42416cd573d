/** A tree without its places: what must survive printing and parsing again. */
export function withoutSpans(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withoutSpans)
  if (typeof node !== 'object' || node === null) return node
  return Object.fromEntries(
    Object.entries(node)
      .filter(([name]) => name !== 'span')
      .map(([name, value]) => [name, withoutSpans(value)]),
  )
}
