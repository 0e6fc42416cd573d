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
    latency: z.number(),
    cpu_time: z.number(),
    rows_returned: z.number(),
    result_set_size: z.number(),
    children: z.array(operatorSchema),
  })
  .transform((raw): DuckDbProfile => ({
    latencySeconds: raw.latency,
    // Named CPU by DuckDB, but it is wall time summed over threads.
    scheduledSeconds: raw.cpu_time,
    rowsReturned: raw.rows_returned,
    resultSetBytes: raw.result_set_size,
    children: raw.children,
  }))

/** The text of DuckDB's JSON profile; undefined when it is none (a torn file, or a form that is not known). */
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
