import { Group, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { TotalsInfo } from '../../../src/protocol/info/schemas/query.ts'
import { read } from '../../api/request.ts'
import { EXPLANATIONS } from '../../parts/explanations.ts'
import { Section } from '../../parts/section.tsx'
import { SeriesChart, type Sample } from '../../parts/series-chart.tsx'
import { countedAs, nanosOf } from '../../parts/units.ts'

const EVERY_MS = 5000
/** The most samples of a series: ten minutes. */
const MOST = 120

/** Height of a chart with its texts, pixels: the tables below it stay in place. */
const ROW = 182

/** Totals, at one time, of all queries that were created since the page was opened. */
interface Counted {
  readonly at: number
  readonly ended: number
  readonly cpuSeconds: number
  readonly open: number
}

/** Ended queries, their CPU, and open queries over the last minutes, for the queries that the user may see. */
export function Activity() {
  const [since] = useState(() => new Date().toISOString())
  const { data: counted = [] } = useQuery<readonly Counted[]>({
    queryKey: ['activity', since],
    refetchInterval: EVERY_MS,
    structuralSharing: false,
    async queryFn({ client, queryKey, signal }) {
      const totals = await read<TotalsInfo>(`/v1/query/totals?since=${encodeURIComponent(since)}`, signal)
      const before = client.getQueryData<readonly Counted[]>(queryKey) ?? []
      return [...before, countedIn(totals)].slice(-MOST)
    },
  })
  if (counted.length < 2)
    return (
      <Section title="Activity">
        <Text size="sm" mih={ROW}>
          The activity appears here after two measurements.
        </Text>
      </Section>
    )
  return (
    <Section title="Activity">
      <Group gap="md" align="start">
        <SeriesChart
          name="Ended"
          explanation={EXPLANATIONS.throughput}
          samples={rates(counted, ({ ended }) => ended)}
          shown={(value) => `${value.toFixed(1)} queries/s`}
        />
        <SeriesChart
          name="CPU"
          explanation={EXPLANATIONS.cpuRate}
          samples={rates(counted, ({ cpuSeconds }) => cpuSeconds)}
          shown={(value) => `${value.toFixed(2)} cores`}
        />
        <SeriesChart
          name="Open"
          explanation={EXPLANATIONS.openSince}
          samples={counted.map(({ at, open }) => ({ at, value: open }))}
          shown={(value) => countedAs(value, 'query')}
        />
      </Group>
    </Section>
  )
}

function countedIn({ states, cpuTime, queries }: TotalsInfo): Counted {
  const ended = (states.FINISHED?.queries ?? 0) + (states.FAILED?.queries ?? 0)
  return { at: Date.now(), ended, cpuSeconds: (nanosOf(cpuTime) ?? 0) / 1e9, open: queries - ended }
}

/** The increase of a count per second, between each sample and the sample before it. */
function rates(counted: readonly Counted[], of: (one: Counted) => number): readonly Sample[] {
  return counted.slice(1).map((one, index) => {
    const before = counted[index] ?? one
    const seconds = Math.max(0.001, (one.at - before.at) / 1000)
    return { at: one.at, value: Math.max(0, (of(one) - of(before)) / seconds) }
  })
}
