import type { QueryInfo } from '../../../src/protocol/info/schemas/query.ts'
import type { Column } from '../../parts/data-table.tsx'
import { Facts } from '../../parts/facts.tsx'
import { TableSection } from '../../parts/table-section.tsx'

interface Property {
  readonly name: string
  readonly value: string
}

const propertyColumns: readonly Column<Property>[] = [
  { id: 'name', title: 'Property', value: ({ name }) => name },
  { id: 'value', title: 'Value', value: ({ value }) => value },
]

/** The session that the client asked for: user, client, properties. */
export function Session({ session }: { readonly session: QueryInfo['session'] }) {
  const properties = Object.entries(session.systemProperties ?? {}).map(([name, value]) => ({ name, value }))
  return (
    <>
      <Facts
        title="Session"
        facts={[
          ['User', session.user],
          ['Logged in as', session.principal],
          ['Posted by', session.originalUser],
          ['Groups', session.groups?.join(', ')],
          [
            'Roles',
            Object.entries(session.roles ?? {})
              .map(([catalog, role]) => `${catalog}: ${role}`)
              .join(', '),
          ],
          ['Source', session.source],
          ['Client tags', session.clientTags?.join(', ')],
          ['Client info', session.clientInfo],
          ['Address', session.remoteUserAddress],
          ['Program', session.userAgent],
          ['Catalog', session.catalog],
          ['Schema', session.schema],
          ['Path', session.path],
          ['Time zone', session.timeZone],
          ['Language', session.locale],
          ['Trace token', session.traceToken],
          ['Transaction', session.transactionId],
        ]}
      />
      <TableSection
        title="Session properties"
        columns={propertyColumns}
        rows={properties}
        rowKey={({ name }) => name}
        empty="The session sets no property."
      />
    </>
  )
}
