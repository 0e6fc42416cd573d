import { Button, Group, NativeSelect, Text } from '@mantine/core'
import { useState } from 'react'
import type { ActFilter, ActKind } from '../../api/acts.ts'
import { shownCount } from '../../parts/units.ts'
import { ActDialog } from './act-dialog.tsx'

const ACTS: readonly { readonly value: ActKind; readonly label: string }[] = [
  { value: 'kill', label: 'Kill' },
  { value: 'hold', label: 'Hold' },
  { value: 'release', label: 'Release' },
  { value: 'rerun', label: 'Run again' },
  { value: 'forget', label: 'Forget' },
]

/** Chooses an act for the selected queries, or for all queries that the filters choose, and opens its preview. */
export function BulkBar({
  filters,
  selected,
  onClear,
}: {
  readonly filters: URLSearchParams
  readonly selected: ReadonlySet<string>
  readonly onClear: () => void
}) {
  const [act, setAct] = useState<ActKind>('kill')
  const [filter, setFilter] = useState<ActFilter>()
  const { label } = ACTS.find(({ value }) => value === act)!
  return (
    <Group align="end" gap="xs" my="xs" role="group" aria-label="Acts on many queries">
      <NativeSelect
        label="Act"
        value={act}
        data={[...ACTS]}
        onChange={(event) => setAct(event.currentTarget.value as ActKind)}
      />
      <Button variant="default" disabled={selected.size === 0} onClick={() => setFilter({ queries: [...selected] })}>
        {label} selected ({shownCount(selected.size)})
      </Button>
      <Button variant="default" onClick={() => setFilter(Object.fromEntries(filters))}>
        {label} all that match{filters.size === 0 ? ' (no filter)' : ''}
      </Button>
      {selected.size === 0 ? (
        <Text size="sm" c="dimmed">
          Select queries in the table
        </Text>
      ) : (
        <Button variant="subtle" onClick={onClear}>
          Clear selection
        </Button>
      )}
      {filter ? (
        <ActDialog
          act={act}
          label={label}
          filter={filter}
          onClose={(isBegun) => {
            setFilter(undefined)
            if (isBegun) onClear()
          }}
        />
      ) : null}
    </Group>
  )
}
