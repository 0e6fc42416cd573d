import { useServerStatus } from '../../api/server.ts'
import { Facts } from '../../parts/facts.tsx'
import { Instant } from '../../parts/instant.tsx'
import { Problem } from '../../parts/problem.tsx'
import { shownCount, shownDuration } from '../../parts/units.ts'

/** The state of the coordinator that answers the console. */
export function ServerFacts() {
  const { data: status, error } = useServerStatus()
  if (error) return <Problem error={error} />
  if (!status) return null
  const { lag, projection, workers } = status
  return (
    <Facts
      title="Coordinator"
      facts={[
        ['Role', status.writer ? 'writes the event log' : 'stand-by'],
        ['Ready', status.ready ? 'yes' : 'no'],
        ['Epoch', shownCount(status.epoch)],
        ['Event log', status.log],
        ['Database', status.database],
        ['Lag of the read models', lag && `${shownCount(lag.events)} events, ${shownDuration(lag.oldestMillis * 1e6)}`],
        ['Projection', projection?.state],
        ['Projection since', projection?.since === undefined ? undefined : <Instant iso={projection.since} />],
        ['Reason', projection?.reason],
        ['Dead letters', shownCount(status.deadLetters)],
        ['Restarts', shownCount(status.restarts)],
        ['Workers', `${workers.active} active, ${workers.suspect} suspect, ${workers.failed} failed`],
        ['Open queries', shownCount(status.openQueries)],
      ]}
    />
  )
}
