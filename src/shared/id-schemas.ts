import { z } from 'zod'
import { NODE_ID, type NodeId, type QueryId, type TaskId } from './ids.ts'

// Of what this program wrote itself, in the log, in tables and to its workers: the form is its own and is not checked again.

export const queryIdSchema = z.string() as unknown as z.ZodType<QueryId, QueryId>
export const taskIdSchema = z.string() as unknown as z.ZodType<TaskId, TaskId>
export const nodeIdSchema = z.string() as unknown as z.ZodType<NodeId, NodeId>

/** A node's name as the node says it. */
export const announcedNodeIdSchema = z.string().regex(NODE_ID) as unknown as z.ZodType<NodeId, NodeId>
