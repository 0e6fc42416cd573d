import { z } from 'zod'

/*
 * The public events, for all readers of the public topic: which user ran a query, when, on which tables, and how it
 * ended. They have no texts of statements, no messages and no literals unless the configuration allows it. Fields may
 * be added, and are never removed or changed (`test/publishing/public-events.test.ts`). A necessary change becomes a
 * new type, `.v2`, beside the existing one.
 */

const count = z.int().min(0)

const queryId = z.string().describe('Id of the query, and the key of the message')
const table = z.object({
  catalog: z.string(),
  schema: z.string(),
  table: z.string(),
  columns: z.array(z.string()),
  mode: z.enum(['READ', 'WRITE']),
})
const totals = z
  .object({
    elapsedNanos: count,
    queuedNanos: count,
    analysisNanos: count,
    planningNanos: count,
    cpuNanos: count,
    peakMemoryBytes: count,
    spilledBytes: count,
    inputRows: count,
    inputBytes: count,
    splits: count,
  })
  .describe('Totals of all tasks of the query, in nanoseconds and bytes')

/** Schemas of the data, by type. A message's type is `quipu.public.<name>`. */
const publicEventSchemas = {
  'query.created.v1': z
    .object({
      queryId,
      user: z.string(),
      source: z.string().optional().describe('Name of the client program'),
      catalog: z.string().optional(),
      schema: z.string().optional(),
      resourceGroup: z.string(),
      statement: z
        .string()
        .optional()
        .describe('Text of the statement without secrets; only if the configuration allows it'),
    })
    .describe('A client posted a statement'),
  'query.planned.v1': z
    .object({
      queryId,
      queryType: z.string().describe('`SELECT`, `INSERT` …'),
      updateType: z.string().optional().describe('`CREATE TABLE`, `DROP VIEW` …'),
      tables: z.array(table),
    })
    .describe('The statement is planned: its tables and columns are known'),
  'write.committed.v1': z
    .object({
      queryId,
      catalog: z.string(),
      schema: z.string(),
      table: z.string().optional().describe('Absent if a schema was changed'),
      operation: z.string().describe('`createTable`, `insert` …'),
      rows: count,
      bytes: count.describe('Size of the files'),
      version: count.optional().describe('Version of the table; absent if it is unknown'),
    })
    .describe('The changes of the statement are visible'),
  'query.finished.v1': z
    .object({
      queryId,
      rows: count,
      bytes: count,
      updateCount: count.optional().describe('Rows that were written'),
      totals,
    })
    .describe('The query finished'),
  'query.failed.v1': z
    .object({
      queryId,
      errorName: z.string().describe('Name of the error in Trino'),
      errorCode: z.int(),
      errorType: z.string().describe('`USER_ERROR`, `INTERNAL_ERROR`, `INSUFFICIENT_RESOURCES`, `EXTERNAL`'),
      message: z.string().optional().describe('Only if the configuration allows it'),
      totals,
    })
    .describe('The query failed; a cancel is USER_CANCELED'),
  'query.forgotten.v1': z
    .object({ queryId })
    .describe('The data of the query was removed from the log; readers should delete their copies, too'),
} as const

export type PublicEventName = keyof typeof publicEventSchemas
export type PublicData<N extends PublicEventName> = z.infer<(typeof publicEventSchemas)[N]>

export const publicEventNames = Object.keys(publicEventSchemas) as readonly PublicEventName[]

export function publicType(name: PublicEventName): string {
  return `quipu.public.${name}`
}

/** The name of a type's schema: `$id` of its file in `etc/public-events`. */
export function publicSchemaId(name: PublicEventName): string {
  return `urn:quipu:public:${name}`
}

/** The JSON Schema of a whole message, CloudEvents 1.0 in structured mode. */
export function publicJsonSchema(name: PublicEventName): object {
  const message = z.object({
    specversion: z.literal('1.0'),
    id: z.string().describe('Identifies the message together with `source`: a repeated message has the same id'),
    source: z.string().describe('The log, `/quipu/<logId>`'),
    type: z.literal(publicType(name)),
    subject: z.string().describe('The query'),
    time: z.string().meta({ format: 'date-time', description: 'Time of the event in the log, UTC' }),
    datacontenttype: z.literal('application/json'),
    dataschema: z.literal(publicSchemaId(name)),
    sequence: z
      .int()
      .min(1)
      .describe('Sequence of the event in its stream of the log: later events have larger numbers'),
    data: publicEventSchemas[name],
  })
  // The schema of what Quipu writes. Readers must accept fields that they do not know.
  const { $schema, ...schema } = z.toJSONSchema(message, { io: 'input' })
  return { $schema, $id: publicSchemaId(name), title: publicType(name), ...schema }
}
