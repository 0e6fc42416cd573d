import { Text } from '@mantine/core'
import { useQueryTotals } from '../../api/queries.ts'
import { shownCount, shownText } from '../../parts/units.ts'

/** Totals of all queries that the filters choose, not only of those on this page. */
export function Totals({ filters }: { readonly filters: URLSearchParams }) {
  const { data, error } = useQueryTotals(filters)
  // The list says why the filters are refused.
  if (error || !data) return null
  const states = Object.entries(data.states).map(([state, figures]) => `${shownCount(figures?.queries ?? 0)} ${state}`)
  return (
    <Text size="sm" my="xs" role="status" title="Totals of all queries that the filters choose">
      {shownCount(data.queries)} queries{states.length === 0 ? '' : ` (${states.join(', ')})`} · CPU{' '}
      {shownText(data.cpuTime)} · read {shownText(data.rawInputDataSize)} · result {shownCount(data.outputPositions)}{' '}
      rows, {shownText(data.outputDataSize)}
    </Text>
  )
}
