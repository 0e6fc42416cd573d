import { Button, Group, Slider, Text } from '@mantine/core'
import { kindOf, type EventHead } from '../../../api/event-summary.ts'
import { Explained } from '../../../parts/explained.tsx'
import { EXPLANATIONS } from '../../../parts/explanations.ts'
import { Instant } from '../../../parts/instant.tsx'
import { countedAs } from '../../../parts/units.ts'
import { eventName } from '../events/event-name.ts'

/** Chooses the event as of which the page shows the query; `Now` follows the query again. */
export function TimeSlider({
  last,
  event,
  asOf,
  onTravel,
}: {
  /** Sequence of the last event. */
  readonly last: number
  /** The event at `asOf`, or the last one; undefined while it is being read. */
  readonly event: EventHead | undefined
  readonly asOf: number | undefined
  readonly onTravel: (sequence: number | undefined) => void
}) {
  const at = asOf ?? last
  const name = event && eventName(kindOf(event))
  return (
    <Group my="sm">
      <Slider
        flex="1 1 16rem"
        min={1}
        max={Math.max(last, 2)}
        disabled={last < 2}
        value={at}
        onChange={onTravel}
        thumbLabel="As of event"
        thumbValueText={`event ${at} of ${last}${name === undefined ? '' : `, ${name}`}`}
        // The text beside the slider has the event; a label over the thumb would cover the buttons above.
        label={null}
      />
      <Text size="sm" w="20rem">
        <Explained by={EXPLANATIONS.asOf}>
          {asOf === undefined ? `Now: ${countedAs(last, 'event')}` : `As of event ${at} of ${last}`}
        </Explained>
        {event ? (
          <>
            {' · '}
            {name} · <Instant iso={event.time} />
          </>
        ) : null}
      </Text>
      <Button size="compact-sm" variant="default" disabled={asOf === undefined} onClick={() => onTravel(undefined)}>
        Go to now
      </Button>
    </Group>
  )
}
