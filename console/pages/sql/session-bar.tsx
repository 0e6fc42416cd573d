import { Group, NativeSelect, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { Metadata } from '../../api/statement/metadata.ts'
import type { StatementSession } from '../../api/statement/session.ts'

const NONE = { value: '', label: 'none' }

/** Shows the catalog and the schema for names that have none, and the properties that statements have set. */
export function SessionBar({
  metadata,
  session,
  onSession,
}: {
  readonly metadata: Metadata
  readonly session: StatementSession
  readonly onSession: (session: StatementSession) => void
}) {
  const { catalog, schema, properties } = session
  const { data: catalogs = [] } = useQuery({ queryKey: ['catalogs'], queryFn: () => metadata.catalogs() })
  const { data: schemas = [] } = useQuery({
    queryKey: ['schemas', catalog],
    enabled: catalog !== undefined,
    queryFn: () => metadata.schemas(catalog ?? ''),
  })
  const set = Object.entries(properties).map(([name, value]) => `${name} = ${value}`)
  return (
    <Group align="end" gap="xs" my="xs">
      <NativeSelect
        label="Catalog"
        value={catalog ?? ''}
        data={[NONE, ...withOwn(catalogs, catalog)]}
        onChange={({ currentTarget: { value } }) =>
          onSession({ ...session, catalog: value === '' ? undefined : value, schema: undefined })
        }
      />
      <NativeSelect
        label="Schema"
        value={schema ?? ''}
        disabled={catalog === undefined}
        data={[NONE, ...withOwn(schemas, schema)]}
        onChange={({ currentTarget: { value } }) => onSession({ ...session, schema: value === '' ? undefined : value })}
      />
      {set.length === 0 ? null : <Text size="sm">Session properties: {set.join(', ')}</Text>}
    </Group>
  )
}

/** A statement may have chosen a name that was made since the list was read. */
function withOwn(names: readonly string[], own: string | undefined): readonly string[] {
  return own === undefined || names.includes(own) ? names : [own, ...names]
}
