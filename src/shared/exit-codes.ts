/** Exit codes of all Quipu processes: the supervisor acts on them. */
export const exitCodes = {
  /** Drained after SIGTERM or SIGINT. */
  drained: 0,
  /** Configuration is wrong; one line on stderr says what. */
  configuration: 64,
  /** Something needed (Postgres, Kafka, a free port) is missing; one line on stderr says what. */
  dependency: 69,
  /** A bug. */
  internal: 70,
  /** Another coordinator holds a higher epoch. */
  fenced: 75,
} as const
