import type pg from 'pg'
import type { EventReader, LogFeed, LogEnd } from '../../events/event-log.ts'
import type { DeadLetter } from '../../events/projection.ts'
import { createProjectionRunner, type ProjectionRunner } from '../../events/projection-runner.ts'
import { emitProjection } from '../../events/telemetry/projection-spans.ts'
import { createReadModelsProjection } from '../../readmodels/projection.ts'
import { countProjected } from '../../readmodels/projection-meter.ts'
import { countPostgresError } from '../../readmodels/read-telemetry.ts'
import { systemClock as clock } from '../../shared/clock.ts'
import type { ProcessTelemetry } from '../telemetry/process-telemetry.ts'

export interface ProjectionDeps {
  readonly log: EventReader & LogFeed & LogEnd
  readonly connection: pg.ClientConfig
  readonly telemetry: ProcessTelemetry
  /** The topic of a log in Kafka. */
  readonly topic: string | undefined
}

/** The projection of the log into the read models, with its metrics, spans and log lines. Not started. */
export function wireProjection({ log, connection, telemetry, topic }: ProjectionDeps): ProjectionRunner {
  const { logger } = telemetry
  return createProjectionRunner({
    log,
    projection: createReadModelsProjection(),
    database: connection,
    clock,
    // Nothing waits for this: a client's reads of its own writes come from memory, and a barrier ends the delay.
    lingerMs: 100,
    onBatch(batch) {
      countProjected(telemetry.meters(), batch)
      emitProjection(telemetry.spans(), 'readmodels', batch, topic)
    },
    onTrouble(trouble) {
      if (trouble.kind === 'dead_letter')
        return logger.error(
          'dead_letter',
          aboutLetter(trouble.letter),
          'An event could not be applied to the read models; it is a dead letter now',
        )
      countPostgresError(telemetry.meters(), trouble.error)
      logger.warn(
        'projection.trouble',
        { kind: trouble.kind, err: trouble.error },
        'The projection fails and tries again',
      )
    },
    onWait: ({ passed, milliseconds }) =>
      telemetry.meters().observe('projectionWait', { result: passed ? 'passed' : 'timeout' }, milliseconds / 1000),
  })
}

/** The fields that identify an event, and the error. The event itself may hold a statement, so it is left out. */
function aboutLetter(letter: DeadLetter): Readonly<Record<string, unknown>> {
  const { stream, sequence, type, v } = letter.event
  return { kind: letter.kind, stream, sequence, type, v, ...(letter.kind === 'failed' ? { err: letter.error } : {}) }
}
