import { once } from 'node:events'
import { setImmediate as nextLoopPass } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { knowSound } from '../../security/rules/java-regex.ts'
import type { TextVersion } from './text-version.ts'

/** What the thread is given. */
export interface TextToRead {
  readonly file: 'rules' | 'resource_groups' | 'session_properties'
  readonly text: string
  readonly key: Uint8Array
}

/** What it answers: which expressions it compiled, or the line that is wrong. */
export type ReadApart =
  { readonly sound: readonly string[]; readonly version: TextVersion } | { readonly wrong: string }

const MOST_MEGABYTES = 1024

/**
 * A file that has changed: a thread looks whether all of the text is right, which takes seconds of ten thousand rules, and
 * what is in force is made of it here a little at a time.
 * @param make of the text, in turns
 * @throws Error with the line, when the text is wrong
 */
export async function readApart<T>(
  given: TextToRead,
  make: (text: string, nextSlice: () => Promise<void>) => Promise<T>,
): Promise<{ readonly value: T; readonly text: TextVersion }> {
  const thread = new Worker(new URL('./read-apart-thread.js', import.meta.url), {
    workerData: given,
    resourceLimits: { maxOldGenerationSizeMb: MOST_MEGABYTES },
  })
  thread.unref()
  const [answer] = (await once(thread, 'message')) as [ReadApart]
  if ('wrong' in answer) throw new Error(answer.wrong)
  knowSound(answer.sound)
  return { value: await make(given.text, () => nextLoopPass()), text: answer.version }
}
