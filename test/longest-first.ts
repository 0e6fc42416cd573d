import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The paths of slow test files, slowest first. All other files take at most some seconds. */
const LONG = [
  'events/kafka/event-log.int',
  'soak/',
  'chaos/',
  'e2e/',
  'files-people-have/',
  'parquet-writers/',
  'integration/',
  'contract/',
  'events/postgres/event-log.int',
  'sql/conformance',
  'sql/nothing-else-reachable',
  'dashboards/rules',
  'connectors/lake/commit-crash',
  'supervisor/',
  'readmodels/',
  'events/',
  'execution/',
  'sql/fuzz',
  'sql/syntax/',
  'sql/functions/',
  'protocol/',
] as const

/**
 * Starts the slowest files first: a slow file that starts last leaves all but one worker idle. Short
 * files that share processes come last, because such a process ends when the next file needs one of its own.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification): number => {
      const found = LONG.findIndex((part) => moduleId.includes(`/test/${part}`))
      return (project.name === 'functions' ? LONG.length + 1 : 0) + (found < 0 ? LONG.length : found)
    }
    // Files of the same path keep the order of the base class: by earlier duration, or by size.
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}
