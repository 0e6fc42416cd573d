import type { JsonValue } from './json-value.ts'
import { SqlFailure, type ScalarFunction } from './scalar-function.ts'
import { documentFrom, documentOf, itemsAt, scalarOf, variablesOf, type Variables } from './sql-json.ts'

/** A column of JSON_TABLE from the analyser; `at` is its index in a row. */
export type JsonTableValue =
  | { readonly at: number; readonly kind: 'ordinality' }
  | {
      readonly at: number
      readonly kind: 'value'
      readonly path: string
      readonly onEmpty: string
      readonly onError: string
    }
  /** `options` as in JSON_QUERY. */
  | { readonly at: number; readonly kind: 'query'; readonly path: string; readonly options: string }

/** The rows of a path: its columns, and the paths below it. */
export interface TablePath {
  readonly path: string
  readonly columns: readonly JsonTableValue[]
  readonly below: TableBelow | undefined
  /** Whether a row without rows below it stays. */
  readonly outer: boolean
}

export type TableBelow =
  | { readonly kind: 'path'; readonly path: TablePath }
  | { readonly kind: 'union' | 'cross'; readonly parts: readonly TableBelow[] }

export interface TableProgram {
  readonly width: number
  readonly root: TablePath
  readonly errorOnError: boolean
}

type Cells = readonly (readonly [number, string | null])[]

/** The rows of JSON_TABLE, each a JSON array: scalars after the letter of their kind, documents as text. */
function jsonTable(input: string, passed: string, text: string): string[] {
  const { width, root, errorOnError } = JSON.parse(text) as TableProgram
  const found = (item: JsonValue, path: string): readonly JsonValue[] => {
    try {
      return itemsAt(item, path, variables)
    } catch (error) {
      if (errorOnError || !(error instanceof SqlFailure)) throw error
      return []
    }
  }
  let document: JsonValue
  let variables: Variables
  try {
    document = documentOf(input)
    variables = variablesOf(passed)
  } catch (error) {
    if (errorOnError || !(error instanceof SqlFailure)) throw error
    return []
  }
  return rowsOf(root, document, found, variables).map((cells) => {
    const row: (string | null)[] = Array.from({ length: width }, () => null)
    for (const [at, cell] of cells) row[at] = cell
    return JSON.stringify(row)
  })
}

type Find = (item: JsonValue, path: string) => readonly JsonValue[]

function rowsOf(node: TablePath, context: JsonValue, find: Find, variables: Variables): Cells[] {
  return find(context, node.path).flatMap((item, i): Cells[] => {
    const own = node.columns.map((column): Cells[number] => [column.at, cellOf(column, item, i, variables)])
    if (node.below === undefined) return [own]
    const below = rowsBelow(node.below, item, find, variables)
    if (below.length === 0) return node.outer ? [own] : []
    return below.map((cells) => [...own, ...cells])
  })
}

function rowsBelow(below: TableBelow, item: JsonValue, find: Find, variables: Variables): Cells[] {
  switch (below.kind) {
    case 'path':
      return rowsOf(below.path, item, find, variables)
    case 'union':
      return below.parts.flatMap((part) => rowsBelow(part, item, find, variables))
    case 'cross':
      return below.parts
        .map((part) => rowsBelow(part, item, find, variables))
        .reduce<Cells[]>((all, rows) => all.flatMap((left) => rows.map((right) => [...left, ...right])), [[]])
  }
}

function cellOf(column: JsonTableValue, item: JsonValue, index: number, variables: Variables): string | null {
  switch (column.kind) {
    case 'ordinality':
      return String(index + 1)
    case 'value':
      return scalarOf(() => itemsAt(item, column.path, variables), column.onEmpty, column.onError)
    case 'query':
      return documentFrom(() => itemsAt(item, column.path, variables), column.options)
  }
}

export const jsonTableScripts: readonly ScalarFunction[] = [
  { name: 'u_json_table', parameters: ['VARCHAR', 'VARCHAR', 'VARCHAR'], returns: 'VARCHAR[]', call: jsonTable },
]
