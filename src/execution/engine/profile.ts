import { z } from 'zod'
import type { DuckDbOperator, DuckDbProfile } from './engine.ts'

const extraInfoSchema = z.record(z.string(), z.union([z.string(), z.array(z.string())]))

const operatorSchema: z.ZodType<DuckDbOperator> = z.lazy(() =>
  z
    .object({
      operator_type: z.string(),
      operator_name: z.string(),
      operator_timing: z.number(),
      operator_cardinality: z.number(),
      extra_info: extraInfoSchema,
      children: z.array(operatorSchema),
    })
    .transform((raw): DuckDbOperator => {
      const { 'Estimated Cardinality': estimate, ...extraInfo } = raw.extra_info
      const estimatedRows = typeof estimate === 'string' ? Number(estimate) : Number.NaN
      return {
        type: raw.operator_type,
        name: raw.operator_name.trim(),
        timingSeconds: raw.operator_timing,
        rowsOut: raw.operator_cardinality,
        ...(Number.isFinite(estimatedRows) ? { estimatedRows } : {}),
        extraInfo,
        children: raw.children,
      }
    }),
)

const profileSchema = z
  .object({
    cpu_time: z.number(),
    children: z.array(operatorSchema),
  })
  .transform((raw): DuckDbProfile => ({
    // DuckDB names this field CPU, but it is wall time summed over threads.
    scheduledSeconds: raw.cpu_time,
    children: raw.children,
  }))

/** Parses DuckDB's JSON profile; undefined when the text is not one (a torn file, or an unknown form). */
export function parseProfile(text: string): DuckDbProfile | undefined {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return undefined
  }
  const parsed = profileSchema.safeParse(json)
  return parsed.success ? parsed.data : undefined
}

/** Operators of LIMIT, in DuckDB's names. */
const LIMITS: ReadonlySet<string> = new Set(['LIMIT', 'STREAMING_LIMIT'])

/**
 * The profile without the limit above the rows of an inline result, and without that limit's time: the engine added the
 * limit, the statement does not have it.
 */
export function withoutBound(profile: DuckDbProfile): DuckDbProfile {
  const [top] = profile.children
  if (!top || !LIMITS.has(top.type)) return profile
  return { scheduledSeconds: Math.max(0, profile.scheduledSeconds - top.timingSeconds), children: top.children }
}
