import { z } from 'zod'
import { pageDigestSchema, taskStatusSchema } from '../api/task.ts'

/**
 * The file `index.jsonl` beside a task's pages: a line when the task begins, a line for each page once it is closed,
 * and a line when the task ends. A line is appended after its page is complete under its name, so every page in the
 * index exists. A torn last line is ignored.
 */
const indexLineSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('task'), instanceId: z.string(), attempt: z.number().int(), createTime: z.string() }),
  z.object({
    type: z.literal('page'),
    token: z.number().int(),
    batch: z.number().int(),
    rows: z.number(),
    bytes: z.number(),
    sha256: z.string(),
    lastOfBatch: z.boolean(),
    digest: pageDigestSchema.optional(),
  }),
  z.object({ type: z.literal('end'), status: taskStatusSchema.omit({ pages: true, inlinePages: true }) }),
])
export type IndexLine = z.infer<typeof indexLineSchema>

/** The lines before the first invalid line. */
export function parseIndex(text: string): IndexLine[] {
  const lines: IndexLine[] = []
  for (const line of text.split('\n')) {
    if (line === '') continue
    try {
      lines.push(indexLineSchema.parse(JSON.parse(line)))
    } catch {
      break
    }
  }
  return lines
}
