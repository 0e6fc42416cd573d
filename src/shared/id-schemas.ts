import { z } from 'zod'
import { NODE_ID, type ClusterName, type NodeId, type QueryId, type TaskId } from './ids.ts'

// Schemas of ids that Quipu itself wrote, in the log, in tables and to its workers. Their form is not checked again.

export const queryIdSchema = z.string() as unknown as z.ZodType<QueryId, QueryId>
export const taskIdSchema = z.string() as unknown as z.ZodType<TaskId, TaskId>
export const nodeIdSchema = z.string() as unknown as z.ZodType<NodeId, NodeId>
export const clusterNameSchema = z.string() as unknown as z.ZodType<ClusterName, ClusterName>

/** A node's name as the node announces it. */
export const announcedNodeIdSchema = z.string().regex(NODE_ID) as unknown as z.ZodType<NodeId, NodeId>
