import { Title } from '@mantine/core'
import type { ReactNode } from 'react'

/** A part of a page under a heading, which also names it for screen readers. */
export function Section({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section aria-label={title}>
      <Title order={2} size="h4" my="xs">
        {title}
      </Title>
      {children}
    </section>
  )
}
