import type { StageInfo } from '../../../src/protocol/info/schemas/query.ts'

/** All stages, from the stage that gives the result to those that read tables. A plan may have a thousand levels. */
export function allStages(root: StageInfo | undefined): readonly StageInfo[] {
  const found: StageInfo[] = root ? [root] : []
  for (let next = 0; next < found.length; next++) found.push(...found[next]!.subStages)
  return found
}

/** An id without the query's id in front: `1.0`. */
export function shortId(id: string): string {
  return id.split('.').slice(1).join('.')
}
