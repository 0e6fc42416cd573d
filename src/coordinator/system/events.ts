import { z } from 'zod'
import { anchorSchema } from '../../events/audit/anchor.ts'

/** Facts of the stream `system`. */
export const systemEventSchemas = {
  EpochStarted: z
    .object({
      epoch: z.number().int(),
      writer: z.string(),
      partitions: z.number().int(),
      logId: z.string(),
      address: z.string(),
      version: z.string(),
    })
    .describe('A coordinator won the right to write the log; its first event in each epoch'),
  EpochEnded: z
    .object({ epoch: z.number().int(), writer: z.string(), reason: z.literal('drained') })
    .describe('The writer stopped on purpose and leaves its place to whoever claims next'),
  ConfigurationLoaded: z
    .object({
      version: z.string(),
      versions: z.record(z.string(), z.string()).optional().describe('Of what it runs on: node, duckdb …'),
      settings: z
        .record(z.string(), z.unknown())
        .describe('By path, `timeouts.longPollMs`; a secret is only said to be set'),
      catalogs: z
        .array(z.object({ name: z.string(), connector: z.string(), digest: z.string().optional() }))
        .optional()
        .describe('`digest`: HMAC-SHA256 of the file, by a key of the cluster'),
    })
    .describe('What a coordinator started with'),
  AuthenticationFailed: z
    .object({
      user: z.string(),
      method: z.string(),
      remoteAddress: z.string().optional(),
      count: z.number().int(),
      minute: z.string(),
    })
    .describe(
      'Refused identities, by user and minute. A name that nobody has here is told as a digest by a key of the process: it may be a password that was typed in its place',
    ),
  LoggedIn: z
    .object({
      user: z.string(),
      principal: z.string().describe('The name that was verified; the user mapping makes the user of it'),
      method: z.string(),
      groups: z.array(z.string()),
      remoteAddress: z.string().optional(),
      count: z.number().int(),
      minute: z.string(),
    })
    .describe('A credential was verified anew, by user, address and minute'),
  AccessDenied: z
    .object({
      user: z.string(),
      action: z.string(),
      object: z.string(),
      queryId: z.string().optional(),
      remoteAddress: z.string().optional(),
      count: z.number().int(),
      minute: z.string(),
    })
    .describe('Refused actions, by user and minute'),
  QueryKilled: z
    .object({
      queryId: z.string(),
      by: z.string(),
      message: z.string().optional().describe('Of earlier versions: the end of the query tells it'),
      remoteAddress: z.string().optional(),
    })
    .describe('Somebody else than its client ended a query'),
  ProjectionRebuilt: z
    .object({ events: z.number(), milliseconds: z.number() })
    .describe('The read models were made anew'),
  DataForgotten: z
    .object({ stream: z.string(), sequences: z.array(z.number().int()), by: z.string() })
    .describe('Data of events was replaced by tombstones; their digests stay'),
  LogAnchored: anchorSchema.describe(
    'What the log holds, signed; each minute or 1,000 events in which something changed',
  ),
} as const

export type SystemEventType = keyof typeof systemEventSchemas

export type SystemEvent = {
  [T in SystemEventType]: {
    readonly type: T
    readonly time: string
    readonly data: Readonly<z.infer<(typeof systemEventSchemas)[T]>>
  }
}[SystemEventType]

export const systemStream = 'system'

/** In the EpochStarted of a command that writes a fact while no coordinator runs: nobody serves there, no query is taken over. */
export const VISITOR_ADDRESS = ''
