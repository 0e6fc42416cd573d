/** Exit codes of all Quipu processes: the supervisor acts on them. */
export const exitCodes = {
  /** Drained after SIGTERM or SIGINT. */
  drained: 0,
  /** The configuration is wrong; one line on stderr explains it. */
  configuration: 64,
  /** A dependency (Postgres, Kafka, a free port) is missing; one line on stderr names it. */
  dependency: 69,
  /** A bug. */
  internal: 70,
  /** Another coordinator holds a higher epoch. */
  fenced: 75,
} as const
