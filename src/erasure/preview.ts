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
 * The least number of found queries that are remembered, so that each counts once. A query counts twice if more other
 * queries were found between two of its events.
 */
const REMEMBERED = 100_000

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

/** Counts names. Two sets take turns: to delete the oldest name of one set, V8 passes all names deleted before. */
class DistinctCount {
  #recent = new Set<string>()
  #before = new Set<string>()
  count = 0

  add(name: string): void {
    if (this.#recent.has(name)) return
    if (!this.#before.has(name)) this.count++
    if (this.#recent.size >= REMEMBERED) {
      this.#before = this.#recent
      this.#recent = new Set()
    }
    this.#recent.add(name)
  }
}
