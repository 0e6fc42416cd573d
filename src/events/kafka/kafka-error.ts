/*
 * What kafkajs throws, read here alone; by fields and names, which are its interface as its classes are: to load those
 * costs a tenth of a second, also where there is no Kafka.
 */

/** Kafka's name of an error, however kafkajs has wrapped it; undefined for one that no broker named. */
export function kafkaErrorType(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = (at as { originalError?: unknown }).originalError ?? at.cause) {
    const { type } = at as { readonly type?: unknown }
    if (typeof type === 'string') return type
  }
  return undefined
}

/** Whether all that a broker says of several topics is of one type. */
export function saysOnly(error: unknown, type: string): boolean {
  const { errors } = error as { readonly errors?: unknown }
  if (!Array.isArray(errors) || errors.length === 0) return kafkaErrorType(error) === type
  return errors.every((one) => kafkaErrorType(one) === type)
}

/** What kafkajs itself would try again. */
export function isKafkaRetriable(error: unknown): boolean {
  return error instanceof Error && 'retriable' in error && error.retriable === true
}

/** How a connection or a request ended, as it is counted. */
export function kafkaFault(error: unknown): 'timeout' | 'disconnect' | 'crash' {
  const name = error instanceof Error ? error.name : ''
  if (/Timeout/.test(name)) return 'timeout'
  return /Connection|Closed|Socket/.test(name) ? 'disconnect' : 'crash'
}
