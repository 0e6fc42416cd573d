import { z } from 'zod'
import type { ErasureScope } from './classify.ts'
import { searchLogs, type SearchedLogs } from './search-logs.ts'

const byType = z.record(z.string(), z.number().int().min(0))

export const previewSchema = z.object({
  queries: z.number().int().min(0).describe('Queries whose data would be removed'),
  records: byType.describe('Other events whose data would be removed, by type'),
  kept: byType.describe('Events that contain the person or the value and stay, by type'),
  mentions: z.number().int().min(0).describe('Queries of other users that mention the person and stay'),
})
/** Numbers of what an erasure would remove and keep. */
export type Preview = Readonly<z.infer<typeof previewSchema>>

/**
 * Most found queries that are remembered, so that each counts once. A query whose events lie further apart than so many
 * other found queries counts twice.
 */
const REMEMBERED = 200_000

/** Searches the logs without changing them. @param onStep called for each step; may throw to stop */
export async function previewErasure(logs: SearchedLogs, scope: ErasureScope, onStep?: () => void): Promise<Preview> {
  const queries = new DistinctCount()
  const mentions = new DistinctCount()
  const records: Record<string, number> = {}
  const kept: Record<string, number> = {}
  for await (const { found } of searchLogs(logs, scope)) {
    onStep?.()
    for (const { finding } of found) {
      if ('queryId' in finding) (finding.kind === 'query' ? queries : mentions).add(finding.queryId)
      else {
        const counts = finding.kind === 'record' ? records : kept
        counts[finding.type] = (counts[finding.type] ?? 0) + 1
      }
    }
  }
  return { queries: queries.count, records, kept, mentions: mentions.count }
}

class DistinctCount {
  readonly #recent = new Set<string>()
  count = 0

  add(name: string): void {
    if (this.#recent.has(name)) return
    this.count++
    this.#recent.add(name)
    const [oldest] = this.#recent.size > REMEMBERED ? this.#recent : []
    if (oldest !== undefined) this.#recent.delete(oldest)
  }
}
