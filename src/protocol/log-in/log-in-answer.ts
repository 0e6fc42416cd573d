import { z } from 'zod'

/** The end of a log-in, as it is stored for the program that waits for it. */
export const outcomeSchema = z.union([z.object({ token: z.string() }), z.object({ error: z.string() })])
export type LogInAnswer = z.output<typeof outcomeSchema>
