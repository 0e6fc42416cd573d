import type { VerdictCounts, VerdictName } from './replay-line.ts'

/** Verdicts that mean that the two sides differ. */
export const BAD_VERDICTS: readonly VerdictName[] = ['DIFFERENT', 'FAILED_THERE', 'FAILED_HERE']

/** How many statements have a verdict that means that the sides differ. */
export function differentIn(counts: VerdictCounts): number {
  return BAD_VERDICTS.reduce((sum, name) => sum + (counts[name] ?? 0), 0)
}
