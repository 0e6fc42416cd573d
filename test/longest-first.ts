import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Where the files lie that take long, those that take longest first; none of the rest takes more than some seconds. */
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

/** Starts the longest files first: one that begins when the others have ended leaves all but one worker idle. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const found = LONG.findIndex((part) => moduleId.includes(`/test/${part}`))
      return found < 0 ? LONG.length : found
    }
    // Within a place as the base class has them: by what they took before, or by their size.
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b))
  }
}
