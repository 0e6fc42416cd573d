/** DuckDB's SQL for files of which rows were removed, for files of changed rows, and for scans with row ids. */
import { FILE_INDEX, FILE_ROW_NUMBER, type ParquetRange } from '../../connectors/spi/parquet-scan.ts'
import { fileText, joinTouching, readerText, wholeNumberText } from './reader-text.ts'

interface Wanted {
  /** The select list. */
  readonly columns: string
  readonly rowIds: boolean
}

/** SELECTs that give exactly the rows of the ranges; whole files of one kind have one reader. */
export function changedFilesText(ranges: readonly ParquetRange[], wanted: Wanted): readonly string[] {
  const joined = joinTouching(ranges)
  const parts = joined.filter((range) => !isWhole(range)).map((range) => selectText([range], wanted))
  const whole = joined.filter(isWhole)
  const kinds = [true, false].flatMap((live) =>
    [true, false].map((removed) =>
      whole.filter(({ liveOnly = false, removedBy }) => liveOnly === live && (removedBy !== undefined) === removed),
    ),
  )
  return [...kinds.filter((kind) => kind.length > 0).map((kind) => selectText(kind, wanted)), ...parts]
}

function isWhole({ firstRow, rows, fileRows }: ParquetRange): boolean {
  return firstRow === 0 && rows === fileRows
}

/** @param ranges one range, or whole files of one kind */
function selectText(ranges: readonly ParquetRange[], { columns, rowIds }: Wanted): string {
  const [range] = ranges as [ParquetRange]
  const ids = rowIds ? `, ${indexText(ranges)} AS "$file", CAST(${FILE_ROW_NUMBER} AS BIGINT) AS "$row"` : ''
  const conditions = range.liveOnly ? ['"$live"'] : []
  if (!isWhole(range)) {
    const [first, end] = [wholeNumberText(range.firstRow), wholeNumberText(range.firstRow + range.rows)]
    conditions.push(`${FILE_ROW_NUMBER} >= ${first}`, `${FILE_ROW_NUMBER} < ${end}`)
  }
  const where = conditions.length > 0 ? ` WHERE ${conditions.join(' AND ')}` : ''
  const files = readerText('parquet', `[${ranges.map(({ path }) => fileText(path)).join(', ')}]`)
  return `SELECT ${columns}${ids} FROM ${files} AS f${range.removedBy ? removedText(ranges) : ''}${where}`
}

/** The value of `$file`, from the position of the file in the reader's list. */
function indexText(ranges: readonly ParquetRange[]): string {
  const indexes = ranges.map(({ index }) => wholeNumberText(index))
  const [first] = indexes
  if (indexes.length === 1) return `CAST(${first} AS INTEGER)`
  const consecutive = indexes.every((index, position) => Number(index) === Number(first) + position)
  if (consecutive) return `CAST(${FILE_INDEX} + ${first} AS INTEGER)`
  return `CAST([${indexes.join(', ')}][CAST(${FILE_INDEX} AS BIGINT) + 1] AS INTEGER)`
}

/** More rows than any file has. */
const ROWS = 2 ** 40

/**
 * An anti join on one plain equality: with several conditions DuckDB is several times slower. The key is the number of
 * the row, and with several files also the position of the file in the reader's list.
 */
function removedText(ranges: readonly ParquetRange[]): string {
  const byChange = new Map<string, { readonly index: number; readonly position: number }[]>()
  for (const [position, { removedBy = [] }] of ranges.entries()) {
    for (const { path, index } of removedBy) {
      const known = byChange.get(path)
      if (known) known.push({ index, position })
      else byChange.set(path, [{ index, position }])
    }
  }
  const several = ranges.length > 1
  const keys = [...byChange].map(([path, removed]) => {
    const reader = readerText('parquet', fileText(path))
    if (!several) {
      return `SELECT "$row" AS k FROM ${reader} WHERE "$live" IS NOT NULL AND "$file" = ${wholeNumberText(removed[0]!.index)}`
    }
    const pairs = removed.map(({ index, position }) => `(${wholeNumberText(index)}, ${wholeNumberText(position)})`)
    return `SELECT c."$row" + v.p * ${ROWS} AS k FROM ${reader} AS c
      JOIN (VALUES ${pairs.join(', ')}) AS v(i, p) ON c."$file" = v.i WHERE c."$live" IS NOT NULL`
  })
  const key = several ? `f.${FILE_ROW_NUMBER} + CAST(f.${FILE_INDEX} AS BIGINT) * ${ROWS}` : `f.${FILE_ROW_NUMBER}`
  return ` ANTI JOIN (${keys.join(' UNION ALL ')}) AS r ON r.k = ${key}`
}
