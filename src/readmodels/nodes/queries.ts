import { z } from 'zod'
import type { QueryRows } from '../../events/projection.ts'
import { nodeIdSchema } from '../../shared/id-schemas.ts'

const knownWorker = z.object({
  nodeId: nodeIdSchema,
  url: z.string(),
  version: z.string(),
  state: z.enum(['active', 'suspect', 'failed']),
  cores: z
    .number()
    .nullable()
    .transform((cores) => cores ?? 0),
  memoryBytes: z.coerce.number(),
})
export type KnownWorker = z.output<typeof knownWorker>

/** Workers that have not left, according to the read models. */
export async function readKnownWorkers(query: QueryRows): Promise<KnownWorker[]> {
  const rows = await query(
    `select node_id as "nodeId", url, version, state, cores, coalesce(memory_bytes, 0) as "memoryBytes"
     from nodes where role = 'worker' and state <> 'gone' order by node_id`,
    [],
  )
  return rows.map((row) => knownWorker.parse(row))
}
