import { CloseButton, Group, ModalBody, ModalContent, ModalOverlay, ModalRoot, Title } from '@mantine/core'
import type { ReactNode } from 'react'

/**
 * A dialog over the page. It has its own header: Mantine's would be a landmark of the page. It does not lock the page's
 * scrolling: that needs a style element, which the content security policy refuses.
 */
export function Dialog({
  title,
  opened,
  size = 'md',
  onClose,
  children,
}: {
  readonly title: string
  readonly opened: boolean
  readonly size?: 'md' | 'xl'
  readonly onClose: () => void
  readonly children: ReactNode
}) {
  return (
    <ModalRoot opened={opened} onClose={onClose} size={size} lockScroll={false}>
      <ModalOverlay />
      <ModalContent aria-label={title}>
        <ModalBody>
          <Group justify="space-between" wrap="nowrap" align="start" my="md">
            <Title order={2} size="h4" className="dialog-title">
              {title}
            </Title>
            <CloseButton aria-label="Close the dialog" onClick={onClose} />
          </Group>
          {children}
        </ModalBody>
      </ModalContent>
    </ModalRoot>
  )
}
