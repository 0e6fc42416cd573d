import { z } from 'zod'

/** An element of a Parquet file's schema: a tree, written depth first. */
export const schemaElementSchema = z.object({
  name: z.string(),
  /** None for a leaf, which holds values. */
  children: z.union([z.null(), z.coerce.number()]),
  type: z.string(),
  /** Digits of a decimal. */
  precision: z.union([z.null(), z.coerce.number()]),
})
export type SchemaElement = z.infer<typeof schemaElementSchema>

/**
 * The top-level column that each leaf is part of, in the order of the leaves. Names hold whatever they hold: paths that are
 * joined by commas could not be taken apart.
 * @param elements the root first
 */
export function columnsOfLeaves(elements: readonly SchemaElement[]): readonly string[] {
  return leavesOf(elements).map(({ column }) => column)
}

/** Lower-case names of columns with decimals of more digits than DuckDB has: it reads them as other numbers. */
export function columnsTooPrecise(elements: readonly SchemaElement[]): readonly string[] {
  const leaves = leavesOf(elements).filter(({ leaf }) => leaf.precision !== null && leaf.precision > MAX_PRECISION)
  return leaves.map(({ column }) => column.toLowerCase())
}

const MAX_PRECISION = 38

interface Leaf {
  readonly leaf: SchemaElement
  /** The top-level column that it is part of. */
  readonly column: string
}

function leavesOf(elements: readonly SchemaElement[]): readonly Leaf[] {
  const leaves: Leaf[] = []
  /** How many children each open element still waits for; the root's own first. */
  const open: number[] = []
  let column = ''
  for (const element of elements) {
    const { name, children } = element
    if (open.length === 1) column = name
    if (open.length > 0) open[open.length - 1]! -= 1
    if (children) open.push(children)
    else leaves.push({ leaf: element, column })
    while (open.length > 1 && open.at(-1) === 0) open.pop()
  }
  return leaves
}
