import { Anchor, Button } from '@mantine/core'
import { Link } from 'wouter'
import type { QueryListItem } from '../../../src/protocol/info/schemas/query.ts'
import { readStatement, useQueryList } from '../../api/queries.ts'
import { SOURCE } from '../../api/statement/session.ts'
import { DataTable, type Column } from '../../parts/data-table.tsx'
import { Instant } from '../../parts/instant.tsx'
import { queryStateColumn } from '../../parts/listed-columns.tsx'
import { Problem } from '../../parts/problem.tsx'

/** The statements that the user ran in the console, newest first. */
export function OwnStatements({ user, onOpen }: { readonly user: string; readonly onOpen: (sql: string) => void }) {
  const { data, error } = useQueryList(new URLSearchParams({ user, source: SOURCE }))
  const columns: readonly Column<QueryListItem>[] = [
    {
      id: 'created',
      title: 'Created',
      value: (query) => query.queryStats.createTime,
      cell: (query) => (
        <Anchor component={Link} href={`/query/${query.queryId}`}>
          <Instant iso={query.queryStats.createTime} />
        </Anchor>
      ),
    },
    queryStateColumn,
    {
      id: 'statement',
      title: 'Statement',
      value: (query) => query.query,
      cell: (query) => <span className="statement">{query.query}</span>,
    },
    {
      id: 'open',
      title: 'Editor',
      value: () => undefined,
      cell: (query) => (
        <Button
          size="compact-xs"
          variant="default"
          onClick={() => void readStatement(query).then(onOpen, () => undefined)}
        >
          Open
        </Button>
      ),
    },
  ]
  if (error) return <Problem error={error} />
  if (!data) return <p>Your statements are being read.</p>
  return (
    <DataTable
      label="My statements"
      columns={columns}
      rows={data.queries}
      rowKey={(query) => query.queryId}
      empty="You have run no statement here yet."
    />
  )
}
