import { Button, Group, TextInput } from '@mantine/core'
import { useState } from 'react'

/** Asks for a name and saves something under it. */
export function SaveForm({ label, onSave }: { readonly label: string; readonly onSave: (name: string) => void }) {
  const [name, setName] = useState('')
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (name.trim() === '') return
        onSave(name.trim())
        setName('')
      }}
    >
      <Group align="end" gap="xs" my="xs">
        <TextInput label={label} value={name} onChange={(event) => setName(event.currentTarget.value)} />
        <Button type="submit" variant="default" disabled={name.trim() === ''}>
          Save
        </Button>
      </Group>
    </form>
  )
}
