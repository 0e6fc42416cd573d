import { Button, Group, Slider, Text } from '@mantine/core'
import type { QueryEvent } from '../../../api/query-events.ts'
import { Instant } from '../../../parts/instant.tsx'
import { eventName } from '../events/event-name.ts'
import { Explained } from '../../../parts/explained.tsx'
import { EXPLANATIONS } from '../../../parts/explanations.ts'

/** Chooses the event as of which the page shows the query; `Now` follows the query again. */
export function TimeSlider({
  events,
  asOf,
  onTravel,
}: {
  readonly events: readonly QueryEvent[]
  readonly asOf: number | undefined
  readonly onTravel: (sequence: number | undefined) => void
}) {
  const last = events.at(-1)?.sequence ?? 1
  const at = asOf ?? last
  const shown = events.find(({ sequence }) => sequence === at)
  return (
    <Group my="sm">
      <Slider
        flex="1 1 16rem"
        min={1}
        max={Math.max(last, 2)}
        value={at}
        onChange={onTravel}
        thumbLabel="As of event"
        thumbValueText={`event ${at} of ${last}${shown ? `, ${eventName(shown)}` : ''}`}
        label={(value) => `event ${value}`}
      />
      <Text size="sm" w="20rem">
        <Explained by={EXPLANATIONS.asOf}>
          {asOf === undefined ? `Now: ${last} events` : `As of event ${at} of ${last}`}
        </Explained>
        {shown ? (
          <>
            {' · '}
            {eventName(shown)} · <Instant iso={shown.time} />
          </>
        ) : null}
      </Text>
      <Button size="compact-sm" variant="default" disabled={asOf === undefined} onClick={() => onTravel(undefined)}>
        Go to now
      </Button>
    </Group>
  )
}
