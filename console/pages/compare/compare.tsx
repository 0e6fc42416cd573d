import { Alert, Title } from '@mantine/core'
import { useSearchParams } from 'wouter'
import type { QueryInfo } from '../../../src/protocol/info/schemas/query.ts'
import { useQueryInfo } from '../../api/queries.ts'
import type { Column } from '../../parts/data-table.tsx'
import { Problem } from '../../parts/problem.tsx'
import { QueryLink } from '../../parts/query-link.tsx'
import { TableSection } from '../../parts/table-section.tsx'
import { usePageTitle } from '../../shell/use-page-title.ts'
import { comparedFigures, comparedOperators, type Compared } from './compared.ts'
import { EXPLANATIONS } from '../../parts/explanations.ts'

const columns: readonly Column<Compared>[] = [
  { id: 'name', title: 'Figure', value: ({ name }) => name },
  { id: 'a', title: 'First', explanation: EXPLANATIONS.compared, value: ({ a }) => a },
  { id: 'b', title: 'Second', explanation: EXPLANATIONS.compared, value: ({ b }) => b },
  {
    id: 'factor',
    title: 'Factor',
    explanation: EXPLANATIONS.factor,
    numeric: true,
    value: ({ factor }) => factor,
    cell: ({ factor }) => (factor === undefined ? '' : `× ${factor.toFixed(2)}`),
  },
]

/** Two runs beside each other: figures and operators. Parameters `a` and `b` of the address are their ids. */
export function ComparePage() {
  usePageTitle('Comparison')
  const [search] = useSearchParams()
  const [a, b] = [search.get('a'), search.get('b')]
  return (
    <>
      <Title order={1} size="h2">
        Comparison
      </Title>
      {a && b ? <Runs a={a} b={b} /> : <p>Choose two runs: open a query, and compare it on its tab Other runs.</p>}
    </>
  )
}

/** Reads two queries by their ids, and compares them. */
function Runs(ids: { readonly a: string; readonly b: string }) {
  const a = useQueryInfo(ids.a, undefined)
  const b = useQueryInfo(ids.b, undefined)
  const error = a.error ?? b.error
  if (a.data && b.data) return <Comparison a={a.data} b={b.data} />
  return error ? <Problem error={error} /> : <p>The queries are being read.</p>
}

function Comparison({ a, b }: { readonly a: QueryInfo; readonly b: QueryInfo }) {
  return (
    <>
      <p>
        First <QueryLink queryId={a.queryId} />, second <QueryLink queryId={b.queryId} />
      </p>
      {a.fingerprint === b.fingerprint ? null : (
        <Alert color="orange" variant="outline" title="The statements differ">
          The queries have different fingerprints, so their figures tell little about each other.
        </Alert>
      )}
      <TableSection
        title="Figures"
        columns={columns}
        rows={comparedFigures(a, b)}
        rowKey={({ name }) => name}
        empty="No figures."
      />
      <TableSection
        title="Operators"
        columns={columns}
        rows={comparedOperators(a, b)}
        rowKey={({ name }) => name}
        empty="No task has figures of operators."
      />
    </>
  )
}
