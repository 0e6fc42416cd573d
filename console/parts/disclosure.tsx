import { useState, type ReactNode } from 'react'

/** Content that is made once the user opens it. */
export function Disclosure({
  summary = 'show',
  content,
}: {
  readonly summary?: string
  readonly content: () => ReactNode
}) {
  const [opened, setOpened] = useState(false)
  return (
    <details onToggle={(toggled) => setOpened(toggled.currentTarget.open)}>
      <summary>{summary}</summary>
      {opened ? content() : null}
    </details>
  )
}
