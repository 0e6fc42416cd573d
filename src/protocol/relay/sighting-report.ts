import { z } from 'zod'
import { principalSchema } from '../../security/authentication/principal.ts'
import { queryIdSchema } from '../../shared/id-schemas.ts'

const method = principalSchema.shape.method
const remoteAddress = z.string().optional()
const sightingSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('AuthenticationFailed'),
    data: z.object({ user: z.string(), method: z.union([method, z.literal('shared_secret')]), remoteAddress }),
  }),
  z.object({
    type: z.literal('AccessDenied'),
    data: z.object({
      user: z.string(),
      originalUser: z.string().optional(),
      action: z.string(),
      object: z.string(),
      queryId: queryIdSchema.optional(),
      remoteAddress,
    }),
  }),
  z.object({
    type: z.literal('LoggedIn'),
    data: z.object({
      user: z.string(),
      principal: z.string(),
      method,
      groups: z.array(z.string()).readonly(),
      remoteAddress,
    }),
  }),
])

const failureKey = z.string().regex(/^(?:user|address)-[\w-]{43}$/)
const failureCounts = z.array(z.tuple([failureKey, z.number().min(0)]).readonly()).readonly()

/**
 * Log-ins, failures and refusals that a follower has seen. The writer records them in the log and counts the failures.
 */
export const sightingReportSchema = z.object({
  sightings: z.array(z.object({ sighting: sightingSchema, count: z.number().int().min(1) })),
  /** How often each key failed. */
  failures: failureCounts,
  /** Keys whose earlier failures no longer count; the failures above still count. */
  forgiven: z.array(failureKey),
})
export type SightingReport = z.output<typeof sightingReportSchema>

/** The failures that the writer remembers: milliseconds until none is left. */
export const rememberedSchema = z.object({ remembered: failureCounts })
export type Remembered = z.output<typeof rememberedSchema>
