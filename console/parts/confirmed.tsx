import { Button, Group, Text, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useMutation, useQueryClient, type QueryKey } from '@tanstack/react-query'
import { useState } from 'react'
import { Dialog } from './dialog.tsx'
import { Problem } from './problem.tsx'

/**
 * A button for an action that changes the server. A dialog explains the action, and asks for a reason if the server
 * records one.
 */
export function Confirmed({
  button,
  confirm = button,
  title,
  text,
  reason,
  danger = false,
  act,
  changes,
}: {
  readonly button: string
  /** The button of the dialog that begins the action. @default the same */
  readonly confirm?: string
  readonly title: string
  readonly text: string
  /** The label of the field for the reason; absent: the act has none. */
  readonly reason?: string
  readonly danger?: boolean
  readonly act: (reason: string) => Promise<void>
  /** The key of the data that the act changes. */
  readonly changes: QueryKey
}) {
  const [opened, { open, close }] = useDisclosure(false)
  const color = danger ? { color: 'red' } : {}
  return (
    <>
      <Button size="compact-sm" variant={danger ? 'outline' : 'default'} {...color} onClick={open}>
        {button}
      </Button>
      {opened ? (
        <Dialog title={title} onClose={close}>
          <Text size="sm">{text}</Text>
          <ActForm {...{ button: confirm, reason, color, act, changes }} onDone={close} />
        </Dialog>
      ) : null}
    </>
  )
}

function ActForm({
  button,
  reason: label,
  color,
  act,
  changes,
  onDone,
}: {
  readonly button: string
  readonly reason: string | undefined
  readonly color: { readonly color?: string }
  readonly act: (reason: string) => Promise<void>
  readonly changes: QueryKey
  readonly onDone: () => void
}) {
  const client = useQueryClient()
  const [reason, setReason] = useState('')
  const acting = useMutation({
    mutationFn: () => act(reason),
    async onSuccess() {
      onDone()
      await client.invalidateQueries({ queryKey: changes })
    },
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        acting.mutate()
      }}
    >
      {label === undefined ? null : (
        <TextInput
          label="Reason"
          description={label}
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
          data-autofocus
        />
      )}
      {acting.error ? <Problem error={acting.error} /> : null}
      <Group justify="end" mt="md">
        <Button type="submit" {...color} loading={acting.isPending}>
          {button}
        </Button>
      </Group>
    </form>
  )
}
