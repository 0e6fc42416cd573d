import { Fragment, type ReactNode } from 'react'
import { Explained } from './explained.tsx'
import type { Explanation } from './explanations.ts'
import { Section } from './section.tsx'

/** A name and its value, with an explanation if it is a number; a fact without a value is not shown. */
export type Fact = readonly [name: string, value: ReactNode, explanation?: Explanation]

/** A list of facts under a heading. */
export function Facts({ title, facts }: { readonly title: string; readonly facts: readonly Fact[] }) {
  return (
    <Section title={title}>
      <dl className="facts">
        {facts
          .filter(([, value]) => value !== undefined && value !== '')
          .map(([name, value, explanation]) => (
            <div key={name}>
              <dt>{explanation ? <Explained by={explanation}>{name}</Explained> : name}</dt>
              <dd>
                <Fragment>{value}</Fragment>
              </dd>
            </div>
          ))}
      </dl>
    </Section>
  )
}
