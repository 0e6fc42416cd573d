import type { QueryInfo } from '../../../../src/protocol/info/schemas/query.ts'
import { Section } from '../../../parts/section.tsx'
import { TimeBars } from '../../../parts/time-bars.tsx'
import { phasesOf } from './phases-of.ts'
import { EXPLANATIONS } from '../../../parts/explanations.ts'

/** The phases of a query on an axis of time. */
export function Phases({ query }: { readonly query: QueryInfo }) {
  const phases = phasesOf(query)
  if (phases.length === 0) return null
  return (
    <Section title="Phases" explanation={EXPLANATIONS.phases}>
      <TimeBars label="Phases" bars={phases} />
    </Section>
  )
}
