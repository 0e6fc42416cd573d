import { Badge } from '@mantine/core'

const COLORS: Readonly<Record<string, string>> = {
  FINISHED: 'green',
  FAILED: 'red',
  CANCELED: 'red',
  ABORTED: 'red',
  RUNNING: 'blue',
  FINISHING: 'blue',
  QUEUED: 'gray',
  PLANNING: 'gray',
  STARTING: 'gray',
  PLANNED: 'gray',
  active: 'green',
  suspect: 'orange',
  failed: 'red',
  shutting_down: 'gray',
  ACTIVE: 'green',
  DRAINING: 'orange',
  INACTIVE: 'gray',
  HEALTHY: 'green',
  UNHEALTHY: 'red',
  PENDING: 'gray',
  CAN_RUN: 'green',
  CAN_QUEUE: 'orange',
  FULL: 'red',
}

/** The state of a query, stage, task, node, cluster or group; the word itself is always there, not only a color. */
export function StateBadge({ state }: { readonly state: string }) {
  return (
    <Badge variant="outline" color={COLORS[state] ?? 'gray'} radius="sm" tt="none" miw="max-content">
      {state}
    </Badge>
  )
}
