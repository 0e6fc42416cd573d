import { Button, Group } from '@mantine/core'
import { DataTable, type Column } from '../../parts/data-table.tsx'
import { SaveForm } from '../../parts/save-form.tsx'
import { useSavedTexts, type SavedText } from '../../parts/use-saved-texts.ts'

/** Queries that the user saved in this browser. */
export function SavedQueries({ text, onOpen }: { readonly text: string; readonly onOpen: (sql: string) => void }) {
  const { saved, save, remove } = useSavedTexts('queries')
  const columns: readonly Column<SavedText>[] = [
    { id: 'name', title: 'Name', value: (query) => query.name },
    {
      id: 'statement',
      title: 'Statement',
      value: (query) => query.text,
      cell: (query) => <span className="statement">{query.text}</span>,
    },
    {
      id: 'actions',
      title: 'Editor',
      value: () => undefined,
      cell: (query) => (
        <Group gap={4} wrap="nowrap">
          <Button size="compact-xs" variant="default" onClick={() => onOpen(query.text)}>
            Open
          </Button>
          <Button size="compact-xs" variant="default" onClick={() => remove(query.name)}>
            Remove
          </Button>
        </Group>
      ),
    },
  ]
  return (
    <>
      <SaveForm label="Save the statement as" onSave={(name) => save({ name, text })} />
      <DataTable
        label="Saved queries"
        columns={columns}
        rows={saved}
        rowKey={(query) => query.name}
        empty="This browser has no saved queries."
      />
    </>
  )
}
