import type { KnownQuery } from '../../coordinator/query/stream/state.ts'
import { storableJson, storableText } from '../../events/storable-text.ts'
import type { RowOf } from '../table.ts'
import { tableAccessRows } from './rows.ts'
import type { columnsReadTable } from './tables.ts'

type ColumnsReadRow = RowOf<(typeof columnsReadTable)['columns']>
type Made = Pick<ColumnsReadRow, 'output_name' | 'direct' | 'indirect' | 'masked'>

interface Source {
  readonly source: string
  readonly direct?: 'IDENTITY' | 'TRANSFORMATION' | 'AGGREGATION' | undefined
  readonly indirect: readonly string[]
  readonly masked?: boolean | undefined
}

/** Limit of a query's sources, each of which is a row. */
const MOST_ROWS = 10_000

/**
 * The columns that a query's plan reads. One row for each output column that a source goes into, one when the source
 * decides about rows, and one for a column that is read otherwise; each once for every chain of views that leads to the
 * column. The lineage does not say through which chain a value came.
 */
export function columnsReadRows(query: KnownQuery): ColumnsReadRow[] {
  const { planned } = query
  if (!planned) return []
  const read = readColumns(query)
  const rows: ColumnsReadRow[] = []
  const named = new Set<string>()
  const add = (source: string, made: Made): void => {
    for (const column of read.get(source) ?? []) {
      if (rows.length >= MOST_ROWS) return
      named.add(source)
      rows.push({ query_id: query.queryId, ordinal: rows.length, ...column, ...made })
    }
  }
  for (const { name, sources } of outputsOf(planned))
    for (const one of sources) add(one.source, { ...madeOf(one), output_name: storableText(name) })
  for (const one of planned.lineage?.rows ?? []) add(one.source, { ...madeOf(one), output_name: null })
  for (const source of read.keys())
    if (!named.has(source)) add(source, { output_name: null, direct: null, indirect: '[]', masked: false })
  return rows
}

type Planned = NonNullable<KnownQuery['planned']>

/**
 * The output columns with their sources. A column without its own entry in the lineage has its sources unchanged, if
 * there is a lineage.
 */
export function outputsOf({
  columns,
  lineage,
}: Planned): { readonly name: string; readonly sources: readonly Source[] }[] {
  const special = new Set(lineage?.columns.map(({ position }) => position))
  return [
    ...(lineage?.columns ?? []),
    ...columns.flatMap(({ name, lineage: sources }, position) =>
      special.has(position)
        ? []
        : [
            {
              name,
              sources: sources.map((source) => ({
                source,
                indirect: [],
                ...(lineage && { direct: 'IDENTITY' as const }),
              })),
            },
          ],
    ),
  ]
}

function madeOf({ direct, indirect, masked }: Source): Omit<Made, 'output_name'> {
  return { direct: direct ?? null, indirect: storableJson(indirect), masked: masked ?? false }
}

type ReadColumn = Pick<ColumnsReadRow, 'table_ordinal' | 'column_name'>

/** The columns that the query reads, by their text in the lineage: parts of a name may contain dots. */
function readColumns(query: KnownQuery): ReadonlyMap<string, readonly ReadColumn[]> {
  const found = new Map<string, ReadColumn[]>()
  for (const { ordinal, mode, catalog_name, schema_name, table_name, columns } of tableAccessRows(query)) {
    if (mode !== 'READ') continue
    for (const column of JSON.parse(columns) as string[]) {
      const source = [catalog_name, schema_name, table_name, column].join('.')
      found.set(source, [...(found.get(source) ?? []), { table_ordinal: ordinal, column_name: column }])
    }
  }
  return found
}
