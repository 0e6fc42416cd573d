import type pg from 'pg'
import type { Config } from '../../config/load-config.ts'
import { countFact } from '../../coordinator/query/telemetry/event-counters.ts'
import type { EventLog } from '../../events/event-log.ts'
import { createEventLogTelemetry, type EventLogTelemetry } from '../../events/telemetry/event-log-telemetry.ts'
import { deriveKey } from '../../security/cluster-secret.ts'
import { steadyWall, systemClock as clock } from '../../shared/clock.ts'
import { epochOf } from '../../shared/ids.ts'
import { eventLogOf } from '../event-log/event-log-of.ts'
import type { ProcessTelemetry } from '../telemetry/process-telemetry.ts'
import { createTroubleLines } from '../health/trouble-lines.ts'

export interface EventLogDeps {
  readonly config: Config
  readonly secret: string
  readonly connection: pg.ClientConfig
  /** Whether Postgres answered. If not, the start does not wait for data keys that are stored there. */
  readonly databaseThere: boolean
  readonly telemetry: ProcessTelemetry
}

/** The event log, not opened, and its telemetry. */
export interface WiredEventLog {
  readonly log: EventLog
  readonly logTelemetry: EventLogTelemetry
  /** @param since creation of the oldest query whose pages are still needed, milliseconds since the epoch */
  keepPagesSince(since: () => number): void
}

export async function wireEventLog(deps: EventLogDeps): Promise<WiredEventLog> {
  const { config, secret, connection, databaseThere, telemetry } = deps
  const { logger } = telemetry
  const logTelemetry = createEventLogTelemetry({
    meters: telemetry.meters,
    spans: telemetry.spans,
    topic: topicOf(config),
    onTrouble: createTroubleLines(logger, clock),
    onEvent: countFact,
  })
  const wall = steadyWall(clock)
  let neededSince = (): number => clock.now()
  const log = await eventLogOf(config, connection.connectionString!, {
    ...logTelemetry.hooks,
    bornIn: epochOf,
    pagesKey: deriveKey(secret, 'result-pages'),
    dataKeys: databaseThere ? {} : { openWaitMs: 0 },
    // A clock that jumped ahead must not make pages look old.
    pagesNeededSince: () => new Date(Math.min(neededSince(), wall()) - config.timeouts.answersKeptMs),
  })
  return { log, logTelemetry, keepPagesSince: (since) => void (neededSince = since) }
}

/** The topic of a log in Kafka; undefined with the log in Postgres. */
export function topicOf(config: Config): string | undefined {
  return config.kafkaBrokers.length === 0 ? undefined : config.kafkaTopic
}
