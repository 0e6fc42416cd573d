import { z } from 'zod'

/** An element of a Parquet file's schema: a tree, written depth first. */
export const schemaElementSchema = z.object({
  name: z.string(),
  /** None for a leaf, which holds values. */
  children: z.union([z.null(), z.coerce.number()]),
  type: z.string(),
})
export type SchemaElement = z.infer<typeof schemaElementSchema>

/**
 * The top-level column that each leaf is part of, in the order of the leaves. Names hold whatever they hold: paths that are
 * joined by commas could not be taken apart.
 * @param elements the root first
 */
export function columnsOfLeaves(elements: readonly SchemaElement[]): readonly string[] {
  const columns: string[] = []
  /** How many children each open element still waits for; the root's own first. */
  const open: number[] = []
  let column = ''
  for (const { name, children } of elements) {
    if (open.length === 1) column = name
    if (open.length > 0) open[open.length - 1]! -= 1
    if (children) open.push(children)
    else columns.push(column)
    while (open.length > 1 && open.at(-1) === 0) open.pop()
  }
  return columns
}
