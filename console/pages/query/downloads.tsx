import { Anchor, Button, Group } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { eventsAsLines } from '../../api/query-events.ts'
import { Problem } from '../../parts/problem.tsx'
import { saveFile } from '../../parts/save-file.ts'

/** Saves the query, its events, and its trace once it has ended. */
export function Downloads({ queryId, over }: { readonly queryId: string; readonly over: boolean }) {
  const saving = useMutation({
    mutationFn: async () => saveFile(`${queryId}-events.ndjson`, await eventsAsLines(queryId)),
  })
  return (
    <Group gap="xs">
      <Anchor
        size="sm"
        title="Save the query as JSON"
        href={`/v1/query/${queryId}?format=json`}
        download={`${queryId}.json`}
      >
        JSON
      </Anchor>
      {over ? (
        <Anchor
          size="sm"
          title="Save the trace of the query"
          href={`/v1/query/${queryId}/trace`}
          download={`${queryId}-trace.json`}
        >
          Trace
        </Anchor>
      ) : null}
      <Button
        size="compact-xs"
        variant="default"
        title="Save all events, one a line"
        loading={saving.isPending}
        onClick={() => saving.mutate()}
      >
        Events
      </Button>
      {saving.error ? <Problem error={saving.error} /> : null}
    </Group>
  )
}
