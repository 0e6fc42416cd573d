import { z } from 'zod'
import type { RE2JS } from 're2js'
import { compileJava, namePattern, type NamePattern } from '../../../security/rules/java-regex.ts'
import { wrong } from '../../../security/rules/rule-patterns.ts'
import { durationMillis, sizeBytes } from '../../../shared/quantities.ts'

/** An expression that matches a whole text, with its named groups. */
export interface FindingPattern {
  readonly pattern: NamePattern
  /** Undefined where the expression has no named groups. */
  readonly finding: RE2JS | undefined
  readonly names: readonly string[]
}

const findingPattern = z
  .string()
  .transform((text, context): FindingPattern => {
    try {
      const finding = text.includes('(?<') ? compileJava(text) : undefined
      return { pattern: namePattern(text), finding, names: Object.keys(finding?.namedGroups() ?? {}) }
    } catch (error) {
      return wrong(context, [], (error as Error).message)
    }
  })
  .nullish()
  .transform((given) => given ?? undefined)

function measured(parse: (text: string) => number | undefined, what: string) {
  return z
    .string()
    .transform((text, context): number => parse(text) ?? wrong(context, [], `'${text}' is not a ${what}`))
}

/** In milliseconds. */
export const durationText = measured(durationMillis, 'duration')
/** In bytes. */
export const sizeText = measured(sizeBytes, 'data size')

function range(text: typeof durationText) {
  const bound = text.nullish().transform((given) => given ?? undefined)
  return z
    .strictObject({ min: bound, max: bound })
    .nullish()
    .transform((given) => given ?? undefined)
}

const queryTypes = [
  'SELECT',
  'EXPLAIN',
  'DESCRIBE',
  'INSERT',
  'UPDATE',
  'DELETE',
  'ANALYZE',
  'DATA_DEFINITION',
  'ALTER_TABLE_EXECUTE',
  'MERGE',
] as const

/** One of Trino's query types, in any case. */
export const queryTypeText = z
  .string()
  .transform((text) => text.toUpperCase())
  .pipe(z.enum(queryTypes))

/** A selector in the form of the file. */
export const selectorSchema = z.strictObject({
  user: findingPattern,
  userGroup: findingPattern,
  originalUser: findingPattern,
  authenticatedUser: findingPattern,
  source: findingPattern,
  queryType: queryTypeText.nullish().transform((given) => given ?? undefined),
  clientTags: z
    .array(z.string())
    .nullish()
    .transform((given) => given ?? []),
  selectorResourceEstimate: z
    .strictObject({
      executionTime: range(durationText),
      cpuTime: range(durationText),
      peakMemory: range(sizeText),
    })
    .nullish()
    .transform((given) => given ?? undefined),
  group: z.string().min(1),
})

export type SelectorKeys = z.output<typeof selectorSchema>
