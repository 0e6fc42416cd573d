import { z } from 'zod'
import { nodeIdSchema } from '../../shared/id-schemas.ts'
import type { NodeId } from '../../shared/ids.ts'

/** Events of the stream `node/{nodeId}` of a worker or coordinator. */
const nodeFailureSchema = z.object({
  type: z.string(),
  message: z.string(),
  stack: z.array(z.string()),
  suppressed: z.array(z.unknown()),
})

const node = z.object({
  nodeId: nodeIdSchema,
  url: z.string(),
  version: z.string(),
  role: z.enum(['coordinator', 'worker']),
})

export const nodeEventSchemas = {
  NodeJoined: node
    .extend({ cores: z.number(), memoryBytes: z.number() })
    .describe('A worker announced itself for the first time, or as a new process'),
  NodeSuspected: node.extend({ reason: z.string() }).describe('A worker missed an answer: it gets no new tasks'),
  NodeFailed: node
    .extend({
      reason: z.enum(['no_answer', 'failure_ratio', 'refused', 'left']),
      lastFailure: nodeFailureSchema.optional(),
    })
    .describe('A worker does not answer, or fails too often'),
  NodeRecovered: node.describe('A suspect or failed worker answers again'),
  NodeLeft: node.describe('A worker announced that it leaves'),
} as const

export type NodeEventType = keyof typeof nodeEventSchemas

export type NodeEvent = {
  [T in NodeEventType]: {
    readonly type: T
    readonly time: string
    readonly data: Readonly<z.infer<(typeof nodeEventSchemas)[T]>>
  }
}[NodeEventType]

export const nodeStreamPrefix = 'node/'

export function nodeStream(nodeId: NodeId): string {
  return `${nodeStreamPrefix}${nodeId}`
}
