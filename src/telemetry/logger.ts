import { pino } from 'pino'
import { reportedError } from './reported-error.ts'

/** The events of log lines. A closed list, so that logs can be searched. */
type LogEvent =
  | 'act.ended'
  | 'act.started'
  | 'act.stopped'
  | 'act.trouble'
  | 'ready'
  | 'draining'
  | 'stopped'
  | 'query.completed'
  | 'query.slow'
  | 'query.internal_error'
  | 'tables.rewritten'
  | 'tables.swept'
  | 'sweep.trouble'
  | 'epoch.won'
  | 'epoch.lost'
  | 'epoch.disbelieved'
  | 'epoch.followed'
  | 'worker.joined'
  | 'worker.lost'
  | 'worker.leaves'
  | 'cluster.found'
  | 'cluster.gone'
  | 'cluster.state'
  | 'cluster.health'
  | 'engine.killed'
  | 'recovery'
  | 'recovery.given_up'
  | 'dead_letter'
  | 'log.trouble'
  | 'dependency.down'
  | 'dependency.up'
  | 'anchor.trouble'
  | 'archive.done'
  | 'archive.trouble'
  | 'erasure.done'
  | 'erasure.trouble'
  | 'projection.trouble'
  | 'projection.rebuilding'
  | 'projection.rebuilt'
  | 'publishing.trouble'
  | 'request.failed'
  | 'request.refused'
  | 'log_in'
  | 'file.reloaded'
  | 'file.broken'
  | 'file.without_effect'
  | 'rules.invalid_expression'
  | 'announcement.failed'
  | 'telemetry.trouble'
  | 'tls.certificate'
  | 'tls.trouble'
  | 'task.trouble'

/**
 * Writes log lines. error: an operator must act; warn: the failure heals itself. Fields are JSON. An `err` is written
 * without quoted values, and with its stack unless it is a network error.
 */
export interface Logger {
  info(event: LogEvent, fields: Readonly<Record<string, unknown>>, message: string): void
  warn(event: LogEvent, fields: Readonly<Record<string, unknown>>, message: string): void
  error(event: LogEvent, fields: Readonly<Record<string, unknown>>, message: string): void
  /** Adds fields to every later line. */
  bind(fields: Readonly<Record<string, unknown>>): void
}

export interface LoggerOptions {
  readonly level: string
  readonly service: string
  readonly instance: string
  readonly version: string
  /** File descriptor of the output. @default 1 */
  readonly fd?: number
}

const SECRETS = [
  'authorization',
  'cookie',
  'password',
  'secret',
  'token',
  'credentials',
  '*.authorization',
  '*.cookie',
  '*.password',
  '*.secret',
  '*.credentials',
  'headers["x-trino-extra-credential"]',
]

/** Writes JSON lines to stdout at once: a buffered output would lose lines when the process is killed. */
export function createLogger(options: LoggerOptions): Logger {
  let bound: Record<string, unknown> = {}
  const log = pino(
    {
      level: options.level,
      base: { service: options.service, instance: options.instance, version: options.version },
      timestamp: pino.stdTimeFunctions.isoTime,
      messageKey: 'message',
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: (error: unknown) => reportedError(error) },
      redact: { paths: SECRETS, censor: '[redacted]' },
    },
    pino.destination({ fd: options.fd ?? 1, sync: true }),
  )
  return {
    info: (event, fields, message) => log.info({ event, ...bound, ...fields }, message),
    warn: (event, fields, message) => log.warn({ event, ...bound, ...fields }, message),
    error: (event, fields, message) => log.error({ event, ...bound, ...fields }, message),
    bind: (fields) => void (bound = { ...bound, ...fields }),
  }
}
