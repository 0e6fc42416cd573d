import { CloseButton, Group, Title } from '@mantine/core'
import type { ReactNode } from 'react'
import classes from './dialog.module.css'

/**
 * A dialog over the page, by the browser's own element: nothing behind it can be reached, Escape closes it, and closing
 * it gives the focus back to the element that had it before.
 */
export function Dialog({
  title,
  size = 'md',
  onClose,
  children,
}: {
  readonly title: string
  readonly size?: 'md' | 'xl'
  readonly onClose: () => void
  readonly children: ReactNode
}) {
  return (
    <dialog ref={showModal} className={classes[size]} aria-label={title} closedby="any" onClose={onClose}>
      <Group justify="space-between" wrap="nowrap" align="start" mb="md">
        <Title order={2} size="h4" className="dialog-title">
          {title}
        </Title>
        <CloseButton aria-label="Close the dialog" onClick={onClose} />
      </Group>
      {children}
    </dialog>
  )
}

/** Shows a dialog, and closes it before its element is removed: otherwise the focus would be lost. */
function showModal(dialog: HTMLDialogElement): () => void {
  dialog.showModal()
  dialog.querySelector<HTMLElement>('[data-autofocus]')?.focus()
  return () => dialog.close()
}
