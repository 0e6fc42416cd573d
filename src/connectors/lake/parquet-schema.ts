import type { ParquetFooter, SchemaElement } from '../spi/parquet-footer.ts'

/** A leaf of a Parquet file's schema and the top-level column that it is part of. */
export interface Leaf {
  readonly element: SchemaElement
  readonly column: string
  /** The column itself, no part of it. */
  readonly whole: boolean
}

/**
 * The leaves in their order. Names hold whatever they hold: paths that are joined by commas could not be taken apart.
 * @param elements the root first
 */
export function leavesOf(elements: readonly SchemaElement[]): readonly Leaf[] {
  const leaves: Leaf[] = []
  /** How many children each open element still waits for; the root's own first. */
  const open: number[] = []
  let column = ''
  for (const element of elements) {
    const { name, children } = element
    if (open.length === 1) column = name
    if (open.length > 0) open[open.length - 1]! -= 1
    if (children) open.push(children)
    else leaves.push({ element, column, whole: open.length === 1 })
    while (open.length > 1 && open.at(-1) === 0) open.pop()
  }
  return leaves
}

/** Physical types, converted types and logical types by `parquet.thrift`'s numbers. */
const INT96 = 3
const FLOATS = new Set([4, 5])
const BYTES = new Set([6, 7])
const UNSIGNED = new Set([11, 12, 13, 14])
/** The beginnings of logical types that are times and timestamps of UTC in nanoseconds. */
const UTC_TIME_NANOSECONDS = /^7c111c3c/
const UTC_TIMESTAMP_NANOSECONDS = /^8c111c3c/
/** DuckDB has no wider decimals: it reads them as doubles. */
const MAX_PRECISION = 38
/** In what Spark writes, whose timestamps have no nanoseconds. */
const OF_SPARK = 'org.apache.spark.'

/**
 * Why DuckDB would read other values than the file has, by the lower-case name of the column.
 * @param leaves of the file
 */
export function misreadColumns(leaves: readonly Leaf[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const { element, column } of leaves) {
    const reason = misread(element)
    if (reason !== undefined) found.set(column.toLowerCase(), reason)
  }
  return found
}

function misread({ precision, logical }: SchemaElement): string | undefined {
  if (precision !== undefined && precision > MAX_PRECISION)
    return `its decimals have ${precision} digits, Trino's ${MAX_PRECISION} at most`
  if (logical !== undefined && UTC_TIME_NANOSECONDS.test(logical))
    return 'the engine would cut its times to microseconds'
  return undefined
}

/**
 * Lower-case names of columns with timestamps that DuckDB cuts to microseconds, though the file may have nanoseconds: INT96,
 * but for what Spark writes, and those of UTC in nanoseconds.
 */
export function finerColumns(leaves: readonly Leaf[], { keys }: ParquetFooter): ReadonlySet<string> {
  const ofSpark = keys.some((key) => key.startsWith(OF_SPARK))
  const finer = leaves.filter(({ element: { physical, logical } }) => {
    return (physical === INT96 && !ofSpark) || (logical !== undefined && UTC_TIMESTAMP_NANOSECONDS.test(logical))
  })
  return new Set(finer.map(({ column }) => column.toLowerCase()))
}

/**
 * Lower-case names of columns whose bounds or bloom filters in the footer answer wrongly when DuckDB asks them: bounds that
 * old programs wrote in the order of signed bytes, and filters of bytes and of floating-point numbers, which know -0.0 and
 * 0.0 as two.
 */
export function checkedByRow(leaves: readonly Leaf[], { bloomFilters, oldBounds }: ParquetFooter): ReadonlySet<string> {
  const isText = ({ converted, logical }: SchemaElement): boolean =>
    converted === 0 || logical?.startsWith('1c') === true
  const filtered = bloomFilters.filter((leaf) => {
    const { element, whole } = leaves[leaf] ?? {}
    if (!element || !whole) return false
    return FLOATS.has(element.physical!) || (BYTES.has(element.physical!) && !isText(element))
  })
  const bounded = oldBounds.filter((leaf) => {
    const element = leaves[leaf]?.element
    return element && (BYTES.has(element.physical!) || element.physical === INT96 || UNSIGNED.has(element.converted!))
  })
  return new Set([...filtered, ...bounded].map((leaf) => leaves[leaf]!.column.toLowerCase()))
}
