import { Title } from '@mantine/core'
import { Fragment, type ReactNode } from 'react'

/** A name and its value; a fact without a value is not shown. */
export type Fact = readonly [name: string, value: ReactNode]

/** A list of facts under a heading. */
export function Facts({ title, facts }: { readonly title: string; readonly facts: readonly Fact[] }) {
  return (
    <section aria-label={title}>
      <Title order={2} size="h4" my="xs">
        {title}
      </Title>
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
    </section>
  )
}
