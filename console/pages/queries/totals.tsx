import { Group } from '@mantine/core'
import { useQueryTotals } from '../../api/queries.ts'
import { Explained } from '../../parts/explained.tsx'
import { EXPLANATIONS } from '../../parts/explanations.ts'
import { countedAs, shownCost, shownCount, shownText } from '../../parts/units.ts'

/** Totals of all queries that the filters choose, not only of those on this page. */
export function Totals({ filters }: { readonly filters: URLSearchParams }) {
  const { data, error } = useQueryTotals(filters)
  // The list says why the filters are refused.
  if (error || !data) return null
  const states = Object.entries(data.states).map(([state, figures]) => `${shownCount(figures?.queries ?? 0)} ${state}`)
  const cost = shownCost(data)
  return (
    <Group gap="md" my="xs" fz="sm" role="status" aria-label="Totals">
      <Explained by={EXPLANATIONS.queriesFound}>
        {countedAs(data.queries, 'query')}
        {states.length === 0 ? '' : ` (${states.join(', ')})`}
      </Explained>
      <Explained by={EXPLANATIONS.cpuFound}>CPU {shownText(data.cpuTime)}</Explained>
      <Explained by={EXPLANATIONS.readFound}>read {shownText(data.rawInputDataSize)}</Explained>
      <Explained by={EXPLANATIONS.resultFound}>
        result {countedAs(data.outputPositions, 'row')}, {shownText(data.outputDataSize)}
      </Explained>
      {cost === '' ? null : <Explained by={EXPLANATIONS.costFound}>cost {cost}</Explained>}
    </Group>
  )
}
