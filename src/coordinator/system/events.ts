import { z } from 'zod'

/** Facts of the stream `system`. */
export const systemEventSchemas = {
  EpochStarted: z.object({
    epoch: z.number().int(),
    writer: z.string(),
    partitions: z.number().int(),
    logId: z.string(),
    address: z.string(),
    version: z.string(),
  }),
  ConfigurationLoaded: z.object({ version: z.string(), settings: z.record(z.string(), z.unknown()) }),
  AuthenticationFailed: z.object({
    user: z.string(),
    method: z.string(),
    remoteAddress: z.string().optional(),
    count: z.number().int(),
    minute: z.string(),
  }),
  AccessDenied: z.object({
    user: z.string(),
    action: z.string(),
    object: z.string(),
    queryId: z.string().optional(),
    remoteAddress: z.string().optional(),
    count: z.number().int(),
    minute: z.string(),
  }),
  QueryKilled: z.object({
    queryId: z.string(),
    by: z.string(),
    message: z.string().optional(),
    remoteAddress: z.string().optional(),
  }),
  ProjectionRebuilt: z.object({ events: z.number(), milliseconds: z.number() }),
  DataForgotten: z.object({ stream: z.string(), sequences: z.array(z.number().int()), by: z.string() }),
  LogAnchored: z.object({
    root: z.string(),
    previous: z.string(),
    signature: z.string(),
    key: z.string(),
    at: z.unknown(),
  }),
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
