import type { ReactNode } from 'react'

/**
 * Scrolls a wide table sideways, also by keyboard.
 * @param label the name of the table
 * @param onScroll present: the table also scrolls in itself from top to bottom; called with the pixels above
 */
export function ScrolledTable({
  label,
  onScroll,
  children,
}: {
  readonly label: string
  readonly onScroll?: (top: number) => void
  readonly children: ReactNode
}) {
  return (
    <div
      className={onScroll ? 'scrolled tall' : 'scrolled'}
      tabIndex={0}
      role="group"
      aria-label={`${label}: table`}
      {...(onScroll && { onScroll: (event) => onScroll(event.currentTarget.scrollTop) })}
    >
      {children}
    </div>
  )
}
