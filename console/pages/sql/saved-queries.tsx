import { Button, Group } from '@mantine/core'
import { DataTable, type Column } from '../../parts/data-table.tsx'
import { statementColumn } from '../../parts/listed-columns.tsx'
import { SaveForm } from '../../parts/save-form.tsx'
import { useSavedTexts, type SavedText } from '../../parts/use-saved-texts.ts'

/** Queries that the user saved in this browser. */
export function SavedQueries({ text, onOpen }: { readonly text: string; readonly onOpen: (sql: string) => void }) {
  const { saved, save, remove } = useSavedTexts('queries')
  const columns: readonly Column<SavedText>[] = [
    { id: 'name', title: 'Name', value: (query) => query.name },
    statementColumn((query) => query.text),
    {
      id: 'actions',
      title: 'Editor',
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
