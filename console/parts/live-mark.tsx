import { Text } from '@mantine/core'

/** Says whether the page follows the event log. */
export function LiveMark({ connected }: { readonly connected: boolean }) {
  return (
    <Text size="xs" c="dimmed" role="status">
      {connected ? '● live' : '○ not connected'}
    </Text>
  )
}
