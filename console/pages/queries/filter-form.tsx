import { Button, Group, NativeSelect, TextInput } from '@mantine/core'
import type { FormEvent } from 'react'
import { useFieldValues } from '../../parts/use-field-values.ts'
import { useTimeZone } from '../../shell/time-zone.tsx'
import { FILTERS, filtersIn, filtersOf, MORE_FILTERS, STATES, valueIn, type Filter } from './filters.ts'

/** The fields that choose queries. @param onFilter called with the parameters of `GET /v1/query` */
export function FilterForm({
  search,
  onFilter,
}: {
  readonly search: URLSearchParams
  readonly onFilter: (search: URLSearchParams) => void
}) {
  const { zone } = useTimeZone()
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    onFilter(filtersOf(new FormData(event.currentTarget), zone))
  }
  const form = useFieldValues((name) => valueIn(search, name, zone), filtersIn(search).toString())
  const hasMore = MORE_FILTERS.some(({ name }) => search.has(name))
  return (
    <form ref={form} onSubmit={submit}>
      <Group align="end" gap="xs" my="sm">
        <NativeSelect
          label="State"
          name="state"
          defaultValue={valueIn(search, 'state', zone)}
          data={[{ value: '', label: 'any' }, ...STATES]}
        />
        {FILTERS.map((filter) => (
          <Field key={filter.name} filter={filter} search={search} />
        ))}
        <Button type="submit" variant="default">
          Filter
        </Button>
        <Button
          variant="subtle"
          onClick={() => {
            // The fields may have texts that are no filters yet.
            form.current?.reset()
            onFilter(new URLSearchParams())
          }}
        >
          Clear
        </Button>
      </Group>
      <details open={hasMore}>
        <summary>More filters</summary>
        <Group align="end" gap="xs" my="xs">
          {MORE_FILTERS.map((filter) => (
            <Field key={filter.name} filter={filter} search={search} />
          ))}
        </Group>
      </details>
    </form>
  )
}

function Field({
  filter: { name, label, kind },
  search,
}: {
  readonly filter: Filter
  readonly search: URLSearchParams
}) {
  const { zone } = useTimeZone()
  return kind === 'time' ? (
    <TextInput
      key={zone}
      label={`${label} (${zone === 'UTC' ? 'UTC' : 'local time'})`}
      name={name}
      type="datetime-local"
      defaultValue={valueIn(search, name, zone)}
    />
  ) : (
    <TextInput label={label} name={name} type="search" defaultValue={valueIn(search, name, zone)} />
  )
}
