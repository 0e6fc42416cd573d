import { EngineError } from '../../shared/engine-error.ts'
import { acceptsText } from '../spi/accepts-text.ts'
import { classifyText } from '../spi/classify-text.ts'
import { columnType } from '../spi/column-type.ts'
import { parseDuckDbType } from '../spi/duckdb-type-text.ts'
import { fits } from '../spi/text-file.ts'
import type { LakeFile } from './lake-files.ts'
import { pathOf, type Partition } from './partition-folders.ts'
import type { DeclaredTypes } from './text-facts.ts'

/** A column with values from the names of a table's folders. */
export interface PartitionKey {
  /** Lower case. */
  readonly name: string
  readonly duckdbType: string
  /** Trino's type text. */
  readonly type: string
}

/** The partitioning of a table: its keys in their order, and for each file their values, as texts for a cast of DuckDB. */
export interface Partitioning {
  readonly keys: readonly PartitionKey[]
  /** For each file, in the order of the files; files of one folder share the array. Null for NULL. */
  readonly values: readonly (readonly (string | null)[])[]
}

const NOT_PARTITIONED: readonly (string | null)[] = []

/**
 * The partitioning of files in folders with the same keys.
 * @param declared types that the administrator has fixed, by name; the type of another key is the common type of its
 * values
 * @param table schema and name, for errors
 * @throws EngineError HIVE_BAD_DATA for a value that is not of its key's declared type
 */
export function partitioningOf(files: readonly LakeFile[], declared: DeclaredTypes, table: string): Partitioning {
  const folders = new Set(files.flatMap(({ partitions }) => (partitions ? [partitions] : [])))
  const [first = []] = folders
  const keys = first.map(({ key }, index) => {
    const duckdbType = declared.get(key) ?? commonType(new Set([...folders].map((one) => one[index]!.value)))
    return { name: key, duckdbType, type: columnType(parseDuckDbType(duckdbType)).type }
  })
  const values = new Map([...folders].map((folder) => [folder, keys.map((key, index) => valueIn(folder, index, key, table))])) // prettier-ignore
  return { keys, values: files.map(({ partitions }) => (partitions && values.get(partitions)) ?? NOT_PARTITIONED) }
}

/** A number of two digits may begin with a zero: months, days and hours are written that way. */
const TWO_DIGITS = /^0\d$/

/**
 * BIGINT, DATE or TIMESTAMP if all values have that type, else VARCHAR. The only loss is a zero before a single digit.
 */
function commonType(values: ReadonlySet<string | null>): string {
  const types = new Set<string>()
  for (const value of values) if (value !== null) types.add(typeOf(value))
  return types.size === 1 ? [...types][0]! : 'VARCHAR'
}

function typeOf(value: string): string {
  if (value === '') return 'VARCHAR'
  if (TWO_DIGITS.test(value)) return 'BIGINT'
  const bytes = Buffer.from(value)
  const mask = classifyText(bytes, 0, bytes.length)
  if ((mask & fits.bigint) !== 0) return 'BIGINT'
  if ((mask & fits.date) !== 0) return 'DATE'
  return (mask & fits.timestamp) === 0 ? 'VARCHAR' : 'TIMESTAMP'
}

function valueIn(
  folder: readonly Partition[],
  index: number,
  { name, duckdbType, type }: PartitionKey,
  table: string,
): string | null {
  // prettier-ignore
  const { value } = folder[index]!
  if (value === null) return null
  if (!acceptsText(duckdbType, value)) {
    const message = `Folder '${pathOf(folder)}' of table '${table}' has a value of '${name}' that is not a valid ${type}`
    throw new EngineError('HIVE_BAD_DATA', message, { retry: 'later' })
  }
  return value
}
