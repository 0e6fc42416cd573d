import { z } from 'zod'
import { clusterNameSchema } from '../../shared/id-schemas.ts'
import type { ClusterName } from '../../shared/ids.ts'
import { clusterHealths, clusterStates } from './state.ts'

/** Events of the stream `cluster/{name}`. */
const cluster = z.object({ name: clusterNameSchema })

/** Why the health changed. */
const healthReasons = ['ready', 'answers_again', 'starting', 'no_answer', 'failure_ratio'] as const
export type HealthReason = (typeof healthReasons)[number]

export const clusterEventSchemas = {
  ClusterFound: cluster
    .extend({
      url: z.string().describe('Without credentials'),
      group: z.string(),
      digest: z.string().describe('SHA-256 of its file'),
      before: z.string().optional().describe('Digest of the file before; absent where there was none'),
      occasion: z.enum(['start', 'reload']).describe('`start`: of the coordinator that writes'),
    })
    .describe(
      'A file describes the cluster, or describes it differently. With a new address its health is PENDING; the state that was asked for stays',
    ),
  ClusterGone: cluster
    .extend({
      digest: z.string().describe('SHA-256 of its last file'),
      occasion: z.enum(['start', 'reload']),
    })
    .describe('No file describes the cluster any more: it gets no new statements, and its running statements continue'),
  ClusterStateAsked: cluster
    .extend({
      before: z.enum(clusterStates),
      after: z.enum(clusterStates),
      reason: z.string().optional().describe('As the user gave it'),
      by: z.string(),
      originalUser: z.string().optional().describe('The user who logged in, where they act as `by`'),
      remoteAddress: z.string().optional(),
    })
    .describe('A user put the cluster into a state. Only an ACTIVE cluster gets new statements'),
  ClusterHealthChanged: cluster
    .extend({
      before: z.enum(clusterHealths),
      after: z.enum(clusterHealths),
      reason: z.enum(healthReasons),
      detail: z.string().optional().describe('The last failure'),
    })
    .describe('Checks and requests of the coordinator that writes show another health'),
} as const

export type ClusterEventType = keyof typeof clusterEventSchemas

/** Version of each event type's payload; a change of shape raises it and adds an upcaster. */
export const clusterEventVersions: Readonly<Record<ClusterEventType, number>> = {
  ClusterFound: 1,
  ClusterGone: 1,
  ClusterStateAsked: 1,
  ClusterHealthChanged: 1,
}

export type ClusterEventData<T extends ClusterEventType> = Readonly<z.infer<(typeof clusterEventSchemas)[T]>>

export type ClusterEvent = {
  [T in ClusterEventType]: { readonly type: T; readonly time: string; readonly data: ClusterEventData<T> }
}[ClusterEventType]

export const clusterStreamPrefix = 'cluster/'

export function clusterStream(name: ClusterName): string {
  return `${clusterStreamPrefix}${name}`
}
