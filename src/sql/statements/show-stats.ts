import { EngineError } from '../../shared/engine-error.ts'
import type { ColumnStatistics } from '../../connectors/spi/column-statistics.ts'
import type { KnownStatistics } from '../front-end.ts'
import { analyzeStatementQuery, periodsOf } from '../analyzer/analyze.ts'
import { errorAt, type Parameters } from '../analyzer/context.ts'
import { qualify, resolve } from '../analyzer/resolve.ts'
import type { ColumnId, RelationNode, ScanNode } from '../analyzer/tree.ts'
import { javaDouble } from '../../duckdb/scripts/double-text.ts'
import type { StatementInput } from '../statement-input.ts'
import type { Query } from '../syntax/ast-query.ts'
import type { ShowStats } from '../syntax/ast-statements.ts'
import type { SqlType } from '../types/sql-type.ts'
import { allOf } from './plain-query.ts'
import type { GeneratedType, RowsQuery, RowValue } from './rows-query.ts'

const DOUBLE: GeneratedType = { name: 'double' }
const VARCHAR: GeneratedType = { name: 'varchar' }

const columns: RowsQuery['columns'] = [
  { name: 'column_name', type: VARCHAR },
  { name: 'data_size', type: DOUBLE },
  { name: 'distinct_values_count', type: DOUBLE },
  { name: 'nulls_fraction', type: DOUBLE },
  { name: 'row_count', type: DOUBLE },
  { name: 'low_value', type: VARCHAR },
  { name: 'high_value', type: VARCHAR },
]

/**
 * The rows of SHOW STATS: one row per column, then one for the table. It shows the catalog's statistics of a table
 * whose rows the query returns unchanged. Only the size in memory is estimated; for filtered, joined and computed
 * values nothing is known.
 * @throws EngineError the same errors as analyzing the query
 */
export async function showStats(input: StatementInput, node: ShowStats): Promise<RowsQuery> {
  const query = await queryOf(input, node)
  const none: Parameters = { kind: 'values', values: [] }
  const metadata = await resolve(query, input, { periods: periodsOf(input, () => none) })
  const analysis = analyzeStatementQuery({ ...input, metadata }, query, none)
  const source = sourceOf(analysis.node)
  const known: KnownStatistics = source === undefined ? {} : await input.metadata.statistics(source.scan.catalog, source.scan.handle) // prettier-ignore
  const shown = analysis.columns.filter(({ hidden }) => hidden !== true)
  const rows = shown.map(({ name, type, column }, i): RowValue[] => {
    const stored = source?.nameOf(column)
    const values = stored === undefined ? {} : (known.columns?.[stored] ?? {})
    return [name ?? `_col${i}`, ...statisticsRow(type, values, stored === undefined ? undefined : known.rows)]
  })
  return { columns, rows: [...rows, [null, null, null, null, known.rows ?? null, null, null]] }
}

async function queryOf(input: StatementInput, { relation, span }: ShowStats): Promise<Query> {
  if (relation.kind === 'TableSubquery') return relation.query
  if (relation.kind !== 'Table') throw errorAt(input, { span }, 'NOT_SUPPORTED', 'SHOW STATS takes a table or a query')
  const { catalog, schema, table } = qualify(relation.name, input.session)
  if ((await input.metadata.table(catalog, schema, table)) === undefined) {
    // This is the only such error without a position in Trino.
    throw new EngineError('TABLE_NOT_FOUND', `Table '${catalog}.${schema}.${table}' does not exist`)
  }
  return allOf(relation)
}

interface Source {
  readonly scan: ScanNode
  /** The table's name of a column that the query returns unchanged. */
  nameOf(column: ColumnId): string | undefined
}

/** The table whose rows a query returns, each once; undefined if it returns other rows. */
function sourceOf(node: RelationNode): Source | undefined {
  switch (node.kind) {
    case 'scan': {
      const names = new Map(node.columns.map(({ id, name }) => [id, name]))
      return { scan: node, nameOf: (column) => names.get(column) }
    }
    case 'sort':
      return sourceOf(node.input)
    case 'project': {
      const input = sourceOf(node.input)
      if (input === undefined) return undefined
      const calculated = new Map(node.columns.map(({ id, expression }) => [id, expression]))
      const nameOf = (column: ColumnId): string | undefined => {
        const expression = calculated.get(column)
        if (expression === undefined) return input.nameOf(column)
        return expression.kind === 'column' ? input.nameOf(expression.id) : undefined
      }
      return { scan: input.scan, nameOf }
    }
    default:
      return undefined
  }
}

function statisticsRow(type: SqlType, known: ColumnStatistics, rows: number | undefined): RowValue[] {
  const { nulls, low, high, distinct } = known
  // If there are no values, all statistics are known.
  if (rows === 0 || (nulls !== undefined && nulls === rows)) return [0, 0, 1, null, null, null]
  const fraction = rows === undefined || nulls === undefined ? null : nulls / rows
  return [dataSize(type, known), distinct ?? null, fraction, null, boundText(type, low), boundText(type, high)]
}

/**
 * The size in memory, in bytes, of values without a fixed width: the size in files, multiplied by the growth that Trino
 * measured (`TableStatisticsReader` of its Iceberg connector).
 */
function dataSize({ kind }: SqlType, { storedBytes }: ColumnStatistics): number | null {
  if (storedBytes === undefined) return null
  switch (kind) {
    case 'varchar':
      return Math.trunc(storedBytes * 2.7)
    case 'varbinary':
      return Math.trunc(storedBytes * 1.4)
    case 'char':
    case 'json':
      return storedBytes
    default:
      return null
  }
}

/** A bound as Trino displays it; Trino computes bounds as doubles. */
function boundText({ kind }: SqlType, value: number | undefined): string | null {
  if (value === undefined || !Number.isFinite(value)) return null
  switch (kind) {
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
      return String(BigInt.asIntN(64, value >= 2 ** 63 ? 2n ** 63n - 1n : BigInt(Math.round(value))))
    case 'double':
    case 'decimal':
      return javaDouble(value)
    case 'real':
      return javaDouble(shortestReal(value))
    case 'date':
      return dateText(value)
    default:
      return null
  }
}

/** The shortest decimal number that is the same real. */
function shortestReal(value: number): number {
  const real = Math.fround(value)
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(real.toPrecision(digits))
    if (Math.fround(short) === real) return short
  }
  return real
}

/** Formats a date like LocalDate.toString. */
function dateText(days: number): string | null {
  const millis = days * 86_400_000
  if (Math.abs(millis) > 8.64e15) return null
  const date = new Date(millis)
  const year = date.getUTCFullYear()
  const digits = String(Math.abs(year)).padStart(4, '0')
  const two = (number: number): string => String(number).padStart(2, '0')
  const sign = year < 0 ? '-' : year > 9999 ? '+' : ''
  return `${sign}${digits}-${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())}`
}
