import type { JsonPath, PathNode } from './json-path.ts'

/** A path to one value that DuckDB finds too. */
export interface PlainPath {
  /** `/a/0`, in the form for DuckDB's JSON functions. */
  readonly pointer: string
  /**
   * A pattern of RE2 that matches every document in which DuckDB may find another value than the path. Such a document
   * has a name of the path twice (the last of equal members counts, DuckDB takes the first), or has escapes, or has a
   * member whose name is an index of the path (a pointer would select that member).
   */
  readonly unlike: string
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/
const INDEX = /^(?:0|[1-9]\d{0,8})$/

/**
 * The plain form of a path of members and single elements with names that are the same in a pointer; undefined for
 * other paths.
 */
export function plainPath({ root }: JsonPath): PlainPath | undefined {
  const steps: string[] = []
  for (let node = root; node.kind !== 'context';) {
    const step = plainStep(node)
    if (step === undefined) return undefined
    steps.unshift(step.name)
    node = step.base
  }
  if (steps.length === 0) return undefined
  const unlike = [...new Set(steps)].map((step) => (INDEX.test(step) ? `"${step}"` : `"${step}".*"${step}"`))
  return { pointer: steps.map((step) => `/${step}`).join(''), unlike: `(?s)${[String.raw`\\`, ...unlike].join('|')}` }
}

function plainStep(node: PathNode): { readonly name: string; readonly base: PathNode } | undefined {
  switch (node.kind) {
    case 'member':
      return node.name !== undefined && NAME.test(node.name) ? { name: node.name, base: node.base } : undefined
    case 'elements': {
      const [only, ...others] = node.subscripts ?? []
      if (only === undefined || others.length > 0 || only.to !== undefined || only.from.kind !== 'literal')
        return undefined
      const { value } = only.from
      const index = typeof value === 'object' ? value.number : ''
      return INDEX.test(index) ? { name: index, base: node.base } : undefined
    }
    default:
      return undefined
  }
}
