/*
 * Reads the errors that kafkajs throws; no other file does. Compares fields and names, which belong to kafkajs's
 * interface as its classes do: loading the classes costs a tenth of a second, even without Kafka.
 */

/** Kafka's name of an error, however kafkajs wrapped it; undefined for an error that no broker named. */
export function kafkaErrorType(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = (at as { originalError?: unknown }).originalError ?? at.cause) {
    const { type } = at as { readonly type?: unknown }
    if (typeof type === 'string') return type
  }
  return undefined
}

/** Whether all errors that a broker reports for several topics are of one type. */
export function saysOnly(error: unknown, type: string): boolean {
  const { errors } = error as { readonly errors?: unknown }
  if (!Array.isArray(errors) || errors.length === 0) return kafkaErrorType(error) === type
  return errors.every((one) => kafkaErrorType(one) === type)
}

/** Whether kafkajs itself would try again. */
export function isKafkaRetriable(error: unknown): boolean {
  return error instanceof Error && 'retriable' in error && error.retriable === true
}

/** How a connection or a request failed, for counters. */
export function kafkaFault(error: unknown): 'timeout' | 'disconnect' | 'crash' {
  const name = error instanceof Error ? error.name : ''
  if (/Timeout/.test(name)) return 'timeout'
  return /Connection|Closed|Socket/.test(name) ? 'disconnect' : 'crash'
}
