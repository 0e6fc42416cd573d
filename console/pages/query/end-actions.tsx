import { Button, Group, Modal, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { cancelQuery, killQuery } from '../../api/queries.ts'
import { Problem } from '../../parts/problem.tsx'

/** Ends a running query: cancels it, or kills it with a reason that its error shows. */
export function EndActions({ queryId }: { readonly queryId: string }) {
  const client = useQueryClient()
  const onSettled = () => client.invalidateQueries({ queryKey: ['query', queryId] })
  const cancel = useMutation({ mutationFn: () => cancelQuery(queryId), onSettled })
  const [opened, { open, close }] = useDisclosure(false)
  return (
    <>
      <Button size="compact-sm" variant="default" loading={cancel.isPending} onClick={() => cancel.mutate()}>
        Cancel
      </Button>
      <Button size="compact-sm" color="red" variant="outline" onClick={open}>
        Kill
      </Button>
      {cancel.error ? <Problem error={cancel.error} /> : null}
      <Modal opened={opened} onClose={close} title={`Kill query ${queryId}`}>
        <KillForm queryId={queryId} onKilled={close} />
      </Modal>
    </>
  )
}

function KillForm({ queryId, onKilled }: { readonly queryId: string; readonly onKilled: () => void }) {
  const client = useQueryClient()
  const [reason, setReason] = useState('')
  const kill = useMutation({
    mutationFn: () => killQuery(queryId, reason),
    async onSuccess() {
      onKilled()
      await client.invalidateQueries({ queryKey: ['query', queryId] })
    },
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        kill.mutate()
      }}
    >
      <TextInput
        label="Reason"
        description="The error of the query shows it"
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
        data-autofocus
      />
      {kill.error ? <Problem error={kill.error} /> : null}
      <Group justify="end" mt="md">
        <Button type="submit" color="red" loading={kill.isPending}>
          Kill
        </Button>
      </Group>
    </form>
  )
}
