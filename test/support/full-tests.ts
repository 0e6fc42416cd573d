/** Whether the tests run every case (`npm run test:all`). Otherwise they run representatives, so that CI stays short. */
export const FULL_TESTS = process.env['QUIPU_FULL_TESTS'] === '1'

/**
 * All entries in a full run; otherwise one of each `step` entries.
 * @param offset the index of the first: callers with several lists let all entries have their turn
 */
export function representatives<T>(all: readonly T[], step: number, offset = 0): readonly T[] {
  return FULL_TESTS ? all : all.filter((_, index) => index % step === offset % step)
}

/** The number of runs of a property: all in a full run; otherwise a third, and at least two. Each CI run draws others. */
export function propertyRuns(all: number): number {
  return FULL_TESTS ? all : Math.min(all, Math.max(2, Math.ceil(all / 3)))
}
