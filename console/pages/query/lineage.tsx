import { useMemo } from 'react'
import type { QueryInfo } from '../../../src/protocol/info/schemas/query.ts'
import type { Column } from '../../parts/data-table.tsx'
import { TableSection } from '../../parts/table-section.tsx'

type Table = NonNullable<QueryInfo['inputs']>[number] & { readonly mode: string }
type Lineage = NonNullable<QueryInfo['lineage']>

interface Source {
  readonly output: string
  readonly source: string
  readonly how: string
}

const tableColumns: readonly Column<Table>[] = [
  { id: 'table', title: 'Table', value: ({ catalogName, schema, table }) => `${catalogName}.${schema}.${table}` },
  { id: 'mode', title: 'Use', value: ({ mode }) => mode },
  { id: 'columns', title: 'Columns', value: ({ columns }) => columns.map(({ name }) => name).join(', ') },
]

const sourceColumns: readonly Column<Source>[] = [
  { id: 'output', title: 'Column of the result', value: ({ output }) => output },
  { id: 'source', title: 'Comes from', value: ({ source }) => source },
  {
    id: 'how',
    title: 'How',
    explanation: {
      text: 'IDENTITY: the value itself; TRANSFORMATION, AGGREGATION: computed from it; other words: it decides about values or rows',
    },
    value: ({ how }) => how,
  },
]

/** The tables that a query used, and the source of each column of its result. */
export function LineageTables({ query }: { readonly query: QueryInfo }) {
  const { inputs = [], outputs = [], lineage } = query
  const tables = [
    ...inputs.map((table) => ({ ...table, mode: 'read' })),
    ...outputs.map((table) => ({ ...table, mode: 'written' })),
  ]
  const sources = useMemo(() => (lineage ? sourcesOf(lineage) : []), [lineage])
  return (
    <>
      <TableSection
        title="Tables"
        columns={tableColumns}
        rows={tables}
        rowKey={({ catalogName, schema, table, mode }) => JSON.stringify([catalogName, schema, table, mode])}
        empty="The query uses no table, or is not planned yet."
      />
      <TableSection
        title="Lineage"
        columns={sourceColumns}
        rows={sources}
        rowKey={(source) => JSON.stringify(source)}
        empty="No column comes from a table."
      />
    </>
  )
}

function sourcesOf({ columns, rows }: Lineage): readonly Source[] {
  const named = [...columns, { name: '(whole rows)', sources: rows }]
  const all = named.flatMap(({ name, sources }) =>
    sources.map(({ source, direct, indirect, masked }) => ({
      output: name,
      source,
      how: [direct, ...indirect, masked ? 'masked' : undefined].filter(Boolean).join(', '),
    })),
  )
  return [...new Map(all.map((one) => [JSON.stringify(one), one])).values()]
}
