import type { ParquetFooter, SchemaElement } from '../spi/parquet-footer.ts'

/** A leaf of a Parquet file's schema and its top-level column. */
export interface Leaf {
  readonly element: SchemaElement
  readonly column: string
  /** Whether the leaf is the column itself, not a part of it. */
  readonly whole: boolean
}

/**
 * The leaves in their order. Names may contain any character, so paths that are joined by commas could not be split
 * again.
 * @param elements the root first
 */
export function leavesOf(elements: readonly SchemaElement[]): readonly Leaf[] {
  const leaves: Leaf[] = []
  /** The number of children that each open element still waits for; the root's first. */
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
/** The first bytes of logical types for UTC times and timestamps in nanoseconds. */
const UTC_TIME_NANOSECONDS = /^7c111c3c/
const UTC_TIMESTAMP_NANOSECONDS = /^8c111c3c/
/** DuckDB has no wider decimals: it reads them as doubles. */
const MAX_PRECISION = 38
/** A key in files of Spark, whose timestamps have no nanoseconds. pyarrow copies the key into files that it writes. */
const OF_SPARK = 'org.apache.spark.'
/** The library that Spark writes files with. */
const SPARK_WRITER = 'parquet-mr'

/**
 * The columns that DuckDB would read as other values than the file has, by lower-case name, with the reason.
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
 * Lower-case names of columns with timestamps that DuckDB cuts to microseconds, although the file may have nanoseconds:
 * INT96, except in files of Spark, and UTC timestamps in nanoseconds.
 */
export function finerColumns(leaves: readonly Leaf[], { keys, createdBy }: ParquetFooter): ReadonlySet<string> {
  const ofSpark = createdBy.startsWith(SPARK_WRITER) && keys.some((key) => key.startsWith(OF_SPARK))
  const finer = leaves.filter(({ element: { physical, logical } }) => {
    return (physical === INT96 && !ofSpark) || (logical !== undefined && UTC_TIMESTAMP_NANOSECONDS.test(logical))
  })
  return new Set(finer.map(({ column }) => column.toLowerCase()))
}

/**
 * Lower-case names of columns for which bounds or bloom filters in the footer give DuckDB wrong answers. These are
 * bounds that old programs wrote in the order of signed bytes, and filters of bytes and of floating-point numbers,
 * which distinguish -0.0 and 0.0.
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
