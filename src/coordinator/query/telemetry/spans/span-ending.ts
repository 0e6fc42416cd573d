import type { Failure } from '../../../../shared/engine-error.ts'
import { attributes as names } from '../../../../telemetry/attribute-names.ts'
import type { AttributeValue, SpanEvent, SpanRecord } from '../../../../telemetry/span.ts'

/** Characters of a text in a span. */
export const MAX_TEXT = 4096

/** Status and events of a span that ended, with an exception at `atMs` when it failed. */
export function spanEnding(
  failure: Failure | undefined,
  atMs: number,
  good: 'OK' | 'UNSET',
  events: readonly SpanEvent[] = [],
): Pick<SpanRecord, 'status' | 'events' | 'statusMessage'> {
  if (!failure) return { status: good, events }
  const about = failureAttributes(failure)
  const exception: SpanEvent = {
    name: 'exception',
    atMs,
    attributes: {
      'exception.type': failure.errorName,
      'exception.message': failure.message.slice(0, MAX_TEXT),
      ...about,
    },
  }
  return { status: 'ERROR', statusMessage: failure.message.slice(0, MAX_TEXT), events: [...events, exception] }
}

export function failureAttributes(failure: Failure | undefined): Record<string, AttributeValue> {
  if (!failure) return {}
  return {
    [names.errorName]: failure.errorName,
    [names.errorCode]: failure.errorCode,
    [names.trinoErrorType]: failure.errorType,
    [names.errorType]: failure.errorName,
  }
}
