import { Anchor, Button } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Link } from 'wouter'
import type { QueryListItem } from '../../../src/protocol/info/schemas/query.ts'
import { readStatement, useQueryList } from '../../api/queries.ts'
import { SOURCE } from '../../api/statement/session.ts'
import { DataTable, type Column } from '../../parts/data-table.tsx'
import { Instant } from '../../parts/instant.tsx'
import { queryStateColumn, statementColumn } from '../../parts/listed-columns.tsx'
import { Problem } from '../../parts/problem.tsx'

/** The statements that the user ran in the console, newest first. */
export function OwnStatements({ user, onOpen }: { readonly user: string; readonly onOpen: (sql: string) => void }) {
  const { data, error } = useQueryList(new URLSearchParams({ user, source: SOURCE }))
  const opening = useMutation({ mutationFn: readStatement, onSuccess: onOpen })
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
    statementColumn((query) => query.query),
    {
      id: 'open',
      title: 'Editor',
      cell: (query) => (
        <Button size="compact-xs" variant="default" onClick={() => opening.mutate(query)}>
          Open
        </Button>
      ),
    },
  ]
  const problem = error ?? opening.error
  return (
    <>
      {problem ? <Problem error={problem} /> : null}
      {data || problem ? null : <p>Your statements are being read.</p>}
      {data ? (
        <DataTable
          label="My statements"
          columns={columns}
          rows={data.queries}
          rowKey={(query) => query.queryId}
          empty="You have run no statement here yet."
        />
      ) : null}
    </>
  )
}
