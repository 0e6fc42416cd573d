import type { ServerStatus } from '../../../src/protocol/info/schemas/server.ts'
import { useServerStatus } from '../../api/server.ts'
import { Facts } from '../../parts/facts.tsx'
import { Instant } from '../../parts/instant.tsx'
import { Problem } from '../../parts/problem.tsx'
import { countedAs, shownCount, shownDuration } from '../../parts/units.ts'
import { EXPLANATIONS } from '../../parts/explanations.ts'

/** The state of the coordinator that answers the console. */
export function ServerFacts() {
  const { data: status, error } = useServerStatus()
  return (
    <>
      {error ? <Problem error={error} /> : null}
      {status ? <StatusFacts status={status} /> : null}
    </>
  )
}

function StatusFacts({ status }: { readonly status: ServerStatus }) {
  const { lag, projection, workers } = status
  return (
    <Facts
      title="Coordinator"
      facts={[
        ['Role', status.writer ? 'writes the event log' : 'stand-by'],
        ['Ready', status.ready ? 'yes' : 'no'],
        ['Epoch', shownCount(status.epoch), EXPLANATIONS.epoch],
        ['Event log', status.log],
        ['Database', status.database],
        [
          'Lag of the read models',
          lag && `${countedAs(lag.events, 'event')}, ${shownDuration(lag.oldestMillis * 1e6)}`,
          EXPLANATIONS.lag,
        ],
        ['Projection', projection?.state],
        ['Projection since', projection?.since === undefined ? undefined : <Instant iso={projection.since} />],
        ['Reason', projection?.reason],
        ['Dead letters', shownCount(status.deadLetters), EXPLANATIONS.deadLetters],
        ['Restarts', shownCount(status.restarts), EXPLANATIONS.restarts],
        [
          'Workers',
          `${workers.active} active, ${workers.suspect} suspect, ${workers.failed} failed`,
          EXPLANATIONS.workers,
        ],
        ['Open queries', shownCount(status.openQueries), EXPLANATIONS.openQueries],
      ]}
    />
  )
}
