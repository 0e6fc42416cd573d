import { z } from 'zod'
import { clusterEventSchemas } from '../coordinator/clusters/events.ts'
import { nodeEventSchemas } from '../coordinator/nodes/events.ts'
import { queryEventSchemas } from '../coordinator/query/stream/events.ts'
import { systemEventSchemas } from '../coordinator/system/events.ts'
import { EngineError } from '../shared/engine-error.ts'
import type { ErasureOrder } from './erasure-store.ts'
import { searchFor, type Subject } from './subject.ts'

/**
 * Refuses an order that would remove the data of nearly all events, and a reason that contains the subject.
 * @throws EngineError INVALID_ARGUMENTS
 */
export function checkOrder({ subject, mentions, reason }: ErasureOrder): void {
  const search = searchFor(subject)
  const refuse = (why: string): never => {
    throw new EngineError('INVALID_ARGUMENTS', why)
  }
  // The reason stays for ever, so a name in other letters is refused too.
  const inSmallLetters = searchFor(smallLettersOf(subject))
  if (reason !== undefined && (search.isIn(reason) || inSmallLetters.isIn(reason.toLowerCase())))
    refuse('The reason is recorded, so it must not contain what is to be erased')
  if ('user' in subject && !mentions) return
  if ('user' in subject && !MENTIONABLE.test(subject.user))
    refuse('A name without a letter or three digits would be found in all queries: erase it without mentions')
  if (ownWords().some((word) => search.isIn(word)))
    refuse(
      'The text is part of a field name, an event type or a fixed value of the events, so it would be found in all queries',
    )
}

/** Matches names that are longer than a short number or a sign of JSON. */
const MENTIONABLE = /\p{L}|\p{N}.*\p{N}.*\p{N}/su

function smallLettersOf(subject: Subject): Subject {
  return 'user' in subject ? { user: subject.user.toLowerCase() } : { value: subject.value.toLowerCase() }
}

/** Constants of JSON, and the words in the header of each stored event, in the log and in its archive. */
const WORDS_OF_HEADERS =
  'true false null system none gzip sequence epoch type time traceparent prevhash hash digest enc data forgotten'.split(
    ' ',
  )

let words: readonly string[] | undefined

/** The types of events, and the names of fields and the fixed values in their headers and their data. */
function ownWords(): readonly string[] {
  if (words) return words
  const found = new Set<string>(WORDS_OF_HEADERS)
  const schemas = [queryEventSchemas, systemEventSchemas, nodeEventSchemas, clusterEventSchemas]
  for (const [type, schema] of schemas.flatMap((all) => Object.entries(all))) {
    found.add(type)
    collect(z.toJSONSchema(schema, { unrepresentable: 'any' }), found)
  }
  return (words = [...found])
}

function collect(schema: unknown, found: Set<string>): void {
  if (typeof schema !== 'object' || schema === null) return
  for (const [key, value] of Object.entries(schema)) {
    if (key === 'properties') for (const name of Object.keys(value as object)) found.add(name)
    if (key === 'const' && typeof value === 'string') found.add(value)
    if (key === 'enum' && Array.isArray(value)) for (const one of value) found.add(String(one))
    collect(value, found)
  }
}
