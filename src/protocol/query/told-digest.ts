import { z } from 'zod'
import { resultDigestSchema } from '../../coordinator/query/events.ts'

/** What `GET /v1/query/{queryId}/digest` answers. */
export const toldDigestSchema = resultDigestSchema.extend({ rows: z.number().int().min(0) })
export type ToldDigest = z.infer<typeof toldDigestSchema>
