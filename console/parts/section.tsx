import { Title } from '@mantine/core'
import type { ReactNode } from 'react'
import { Explained } from './explained.tsx'
import type { Explanation } from './explanations.ts'

/** A part of a page under a heading, which also names it for screen readers. */
export function Section({
  title,
  explanation,
  children,
}: {
  readonly title: string
  /** Explains the numbers of the part. */
  readonly explanation?: Explanation
  readonly children: ReactNode
}) {
  return (
    <section aria-label={title} {...(explanation && { 'data-explains': true })}>
      <Title order={2} size="h4" my="xs">
        {explanation ? <Explained by={explanation}>{title}</Explained> : title}
      </Title>
      {children}
    </section>
  )
}
