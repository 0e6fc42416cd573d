import type { ReactNode } from 'react'

/** Scrolls a wide table sideways, also by keyboard. @param label the name of the table */
export function ScrolledTable({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <div className="scrolled" tabIndex={0} role="group" aria-label={`${label}: table`}>
      {children}
    </div>
  )
}
