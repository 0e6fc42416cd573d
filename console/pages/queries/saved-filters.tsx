import { Button, Group, Text } from '@mantine/core'
import { SaveForm } from '../../parts/save-form.tsx'
import { useSavedTexts } from '../../parts/use-saved-texts.ts'

/** Filters that the user saved in this browser: a button each. */
export function SavedFilters({
  filters,
  onFilter,
}: {
  readonly filters: URLSearchParams
  readonly onFilter: (search: URLSearchParams) => void
}) {
  const { saved, save, remove } = useSavedTexts('filters')
  const shown = saved.find(({ text }) => text === filters.toString())
  return (
    <details open={saved.length > 0}>
      <summary>Saved filters</summary>
      <Group gap="xs" my="xs">
        {saved.map(({ name, text }) => (
          <Button
            key={name}
            size="compact-sm"
            variant={name === shown?.name ? 'light' : 'default'}
            title={decodeURIComponent(text)}
            onClick={() => onFilter(new URLSearchParams(text))}
          >
            {name}
          </Button>
        ))}
        {shown ? (
          <Button size="compact-sm" variant="subtle" onClick={() => remove(shown.name)}>
            Remove {shown.name}
          </Button>
        ) : null}
      </Group>
      {filters.size === 0 && saved.length === 0 ? (
        <Text size="sm">Choose filters first: then you can save them here under a name.</Text>
      ) : null}
      {filters.size === 0 || shown ? null : (
        <SaveForm label="Save these filters as" onSave={(name) => save({ name, text: filters.toString() })} />
      )}
    </details>
  )
}
