import { quoteName, printText } from '../syntax/print-names.ts'

/** A value of a generated row. */
export type RowValue = string | number | boolean | null

interface GeneratedColumn {
  readonly name: string
  /** Cast to this type; without one the column has the type of its values, as literals. */
  readonly type?: string
}

export interface RowsQuery {
  readonly columns: readonly GeneratedColumn[]
  readonly rows: readonly (readonly RowValue[])[]
  /** LIKE on the first column. */
  readonly like?: { readonly pattern: string; readonly escape: string | undefined } | undefined
}

/**
 * Rows that are known here as a query in SQL, so that they take the way of every other result. They keep their order.
 */
export function rowsQuery({ columns, rows, like }: RowsQuery): string {
  const names = columns.map(({ name }) => quoteName(name))
  const select = columns.map(({ type }, index) => {
    const name = names[index]!
    return type === undefined ? name : `CAST(${name} AS ${type}) AS ${name}`
  })
  const values = (rows.length === 0 ? [columns.map(() => null)] : rows).map(
    (row, index) => `(${[...row.map(literal), index].join(', ')})`,
  )
  const conditions = [
    ...(rows.length === 0 ? ['false'] : []),
    ...(like === undefined ? [] : [`${likeText(names[0]!, like)}`]),
  ]
  const where = conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`
  const from = `(VALUES ${values.join(', ')}) AS generated (${[...names, '"$order"'].join(', ')})`
  return `SELECT ${select.join(', ')} FROM ${from}${where} ORDER BY "$order"`
}

function likeText(name: string, like: { readonly pattern: string; readonly escape: string | undefined }): string {
  const escape = like.escape === undefined ? '' : ` ESCAPE ${printText(like.escape)}`
  return `${name} LIKE ${printText(like.pattern)}${escape}`
}

function literal(value: RowValue): string {
  return typeof value === 'string' ? printText(value) : String(value)
}
