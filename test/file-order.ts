import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { sharesProcess } from './shared-process.ts'

/** Quiet seconds of two cores that files of 2 s and more took; what is not named is short, or new. */
const SECONDS = JSON.parse(readFileSync(new URL('file-seconds.json', import.meta.url), 'utf8')) as Record<
  string,
  number
>
const SHORT = 2

interface Weighed {
  readonly file: TestSpecification
  readonly seconds: number
}

/**
 * Long files first, so that none is left alone at the end: those that wait for servers beside those that compute all the time,
 * each kind spread over the whole while. Short ones that share a process follow one another: it would end otherwise.
 */
export class MixedOrder extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const weighed = files
      .map((file) => ({ file, seconds: SECONDS[relative(import.meta.dirname, file.moduleId)] ?? SHORT / 2 }))
      .toSorted((a, b) => b.seconds - a.seconds || (a.file.moduleId < b.file.moduleId ? -1 : 1))
    const of = (which: (shares: boolean, seconds: number) => boolean): Weighed[] =>
      weighed.filter(({ file, seconds }) => which(sharesProcess(relative(import.meta.dirname, file.moduleId)), seconds))
    const waiting = of((shares) => !shares)
    const computing = of((shares, seconds) => shares && seconds >= SHORT)
    const short = of((shares, seconds) => shares && seconds < SHORT)
    return Promise.resolve([...spread(waiting, computing), ...short].map(({ file }) => file))
  }
}

/** Both in their order, so that at any time about the same share of each has begun. */
function spread(one: readonly Weighed[], other: readonly Weighed[]): Weighed[] {
  const placed = [one, other].flatMap((files) => {
    const all = files.reduce((sum, { seconds }) => sum + seconds, 0)
    let begun = 0
    return files.map((weighed) => {
      const at = begun / all
      begun += weighed.seconds
      return { at, weighed }
    })
  })
  return placed.toSorted((a, b) => a.at - b.at).map(({ weighed }) => weighed)
}
