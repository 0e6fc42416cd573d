import { UnstyledButton } from '@mantine/core'
import { useId, useRef, useState, type ReactNode } from 'react'
import { explanationText, type Explanation } from './explanations.ts'

/** Distance of an explanation from its number and from the edges of the window, pixels. */
const GAP = 6

/** A number or the name of a number. Its explanation appears by pointer, keyboard and tap. Escape hides it. */
export function Explained({
  by,
  onClick,
  children,
}: {
  readonly by: Explanation
  /** Called by a click, which also shows the explanation. */
  readonly onClick?: ((event: unknown) => void) | undefined
  readonly children: ReactNode
}) {
  const [open, setOpen] = useState(false)
  const id = useId()
  const number = useRef<HTMLButtonElement>(null)
  const show = () => setOpen(true)
  const hide = () => setOpen(false)
  return (
    <>
      <UnstyledButton
        ref={number}
        className="explained"
        data-explained
        {...(open ? { 'aria-describedby': id } : {})}
        onMouseEnter={show}
        onMouseLeave={hide}
        onFocus={show}
        onBlur={hide}
        onKeyDown={(event) => (event.key === 'Escape' ? hide() : undefined)}
        onClick={(event) => {
          show()
          onClick?.(event)
        }}
      >
        {children}
      </UnstyledButton>
      {open ? (
        <span
          id={id}
          role="tooltip"
          popover="manual"
          className="explanation"
          ref={(element) => showBeside(element, number.current)}
        >
          {explanationText(by)}
        </span>
      ) : null}
    </>
  )
}

/** Shows an explanation over the page: below its number, or above the number if there is no room below. */
function showBeside(element: HTMLElement | null, number: HTMLElement | null): void {
  if (!element || !number) return
  element.showPopover()
  const { left, top, bottom } = number.getBoundingClientRect()
  const { width, height } = element.getBoundingClientRect()
  const below = bottom + GAP
  element.style.left = `${Math.max(GAP, Math.min(left, innerWidth - width - GAP))}px`
  element.style.top = `${below + height > innerHeight ? Math.max(GAP, top - height - GAP) : below}px`
}
