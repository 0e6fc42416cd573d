import { Fragment, type ReactNode } from 'react'
import { Section } from './section.tsx'

/** A name and its value; a fact without a value is not shown. */
export type Fact = readonly [name: string, value: ReactNode]

/** A list of facts under a heading. */
export function Facts({ title, facts }: { readonly title: string; readonly facts: readonly Fact[] }) {
  return (
    <Section title={title}>
      <dl className="facts">
        {facts
          .filter(([, value]) => value !== undefined && value !== '')
          .map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>
                <Fragment>{value}</Fragment>
              </dd>
            </div>
          ))}
      </dl>
    </Section>
  )
}
