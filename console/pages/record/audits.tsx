import { Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { AuditInfo } from '../../../src/protocol/audit/audit-info.ts'
import { read } from '../../api/request.ts'
import type { Column } from '../../parts/data-table.tsx'
import { Explained } from '../../parts/explained.tsx'
import { EXPLANATIONS } from '../../parts/explanations.ts'
import { countColumn, instantColumn } from '../../parts/figure-columns.tsx'
import { Problem } from '../../parts/problem.tsx'
import { TableSection } from '../../parts/table-section.tsx'
import { shownCount, shownDuration } from '../../parts/units.ts'

/** The entry for audits in the list of questions. Audits come from the REST interface, not from the history. */
export const AUDITS = { id: 'audits', title: 'Audits and anchors' } as const

type Audit = AuditInfo['audits'][number]
type Anchor = AuditInfo['anchors'][number]
type Key = AuditInfo['keys'][number]

const auditColumns: readonly Column<Audit>[] = [
  instantColumn({ id: 'time', title: 'Time', of: ({ time }) => time }),
  { id: 'by', title: 'By', value: ({ by }) => by },
  {
    id: 'findings',
    title: 'Findings',
    explanation: EXPLANATIONS.findings,
    value: ({ findings }) => findingsText(findings),
  },
  countColumn({ id: 'events', title: 'Events', explanation: EXPLANATIONS.auditEvents, of: ({ events }) => events }),
  {
    id: 'queries',
    title: 'Queries',
    explanation: EXPLANATIONS.auditQueries,
    numeric: true,
    value: ({ queries }) => queries,
    cell: ({ queries, open }) => `${shownCount(queries)}, ${shownCount(open)} open`,
  },
  {
    id: 'anchors',
    title: 'Anchors',
    explanation: EXPLANATIONS.auditAnchors,
    numeric: true,
    value: ({ anchors }) => anchors,
    cell: ({ anchors, signatures }) => `${shownCount(anchors)}, ${shownCount(signatures)} verified`,
  },
  countColumn({ id: 'tables', title: 'Tables', explanation: EXPLANATIONS.auditTables, of: ({ tables }) => tables }),
  countColumn({
    id: 'periods',
    title: 'Periods',
    explanation: EXPLANATIONS.auditPeriods,
    of: ({ periods }) => periods,
  }),
  {
    id: 'took',
    title: 'Took',
    explanation: EXPLANATIONS.auditTime,
    numeric: true,
    value: ({ milliseconds }) => milliseconds,
    cell: ({ milliseconds }) => shownDuration(milliseconds * 1e6),
  },
]

const keyColumn: Column<{ readonly key: string }> = {
  id: 'key',
  title: 'Key',
  value: ({ key }) => key,
  cell: ({ key }) => <span className="id">{key}</span>,
}

const anchorColumns: readonly Column<Anchor>[] = [
  countColumn({ id: 'number', title: 'Number', explanation: EXPLANATIONS.anchorNumber, of: ({ number }) => number }),
  instantColumn({ id: 'time', title: 'Time', of: ({ time }) => time }),
  countColumn({ id: 'heads', title: 'Streams', explanation: EXPLANATIONS.anchorHeads, of: ({ heads }) => heads }),
  countColumn({ id: 'events', title: 'Events', explanation: EXPLANATIONS.anchorEvents, of: ({ events }) => events }),
  keyColumn,
]

const keyColumns: readonly Column<Key>[] = [
  keyColumn,
  {
    id: 'signed',
    title: 'Introduced by',
    value: ({ signedBy }) => signedBy,
    cell: ({ key, signedBy }) => (key === signedBy ? 'itself' : <span className="id">{signedBy}</span>),
  },
]

/** The last audits of the event log, its last anchors, and their keys. */
export function Audits() {
  const { data, error } = useQuery<AuditInfo>({
    queryKey: ['audit'],
    refetchInterval: 10_000,
    queryFn: ({ signal }) => read<AuditInfo>('/v1/audit', signal),
  })
  if (!data) return error ? <Problem error={error} /> : null
  const [last] = data.audits
  return (
    <>
      {error ? <Problem error={error} /> : null}
      <Text size="sm">
        Results of quipu audit verify while a coordinator wrote the log, the last anchors, and the keys that sign them.
      </Text>
      <Text fw={700} role="status">
        {last === undefined ? (
          'No audit is recorded'
        ) : (
          <Explained by={EXPLANATIONS.findings}>Last audit: {findingsText(last.findings)}</Explained>
        )}
      </Text>
      <TableSection
        title="Audits"
        columns={auditColumns}
        rows={data.audits}
        rowKey={({ time, by }) => `${time} ${by}`}
        empty="No audit ran while a coordinator wrote the log: run quipu audit verify."
      />
      <TableSection
        title="Anchors"
        columns={anchorColumns}
        rows={data.anchors}
        rowKey={({ number }) => String(number)}
        empty="The log has no anchor yet."
      />
      <TableSection
        title="Keys of anchors"
        columns={keyColumns}
        rows={data.keys}
        rowKey={({ key, signedBy }) => `${key} ${signedBy}`}
        empty="The log introduces no key yet."
      />
    </>
  )
}

function findingsText(findings: Audit['findings']): string {
  const kinds = Object.entries(findings).map(([kind, count]) => `${shownCount(count)} ${kind}`)
  return kinds.length === 0 ? 'nothing found' : kinds.join(', ')
}
