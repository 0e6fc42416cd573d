import { once } from 'node:events'
import { setImmediate as nextLoopPass } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { knowSound } from '../../security/rules/java-regex.ts'
import type { TextVersion } from './text-version.ts'
import { programUrl } from '../../shared/programs.ts'

/** The input of the thread. */
export interface TextToRead {
  readonly file: 'rules' | 'resource_groups' | 'session_properties' | 'routing-rules'
  readonly text: string
  readonly key: Uint8Array
}

/** The thread's answer: the expressions that it compiled, or the message about the wrong line. */
export type ReadApart =
  | { readonly sound: readonly string[]; readonly version: TextVersion }
  | { readonly wrong: string }

const MOST_MEGABYTES = 1024

/**
 * Reads a changed file. A thread first checks the whole text, which takes seconds for ten thousand rules. Then this
 * thread makes the value from the text in small steps.
 * @param make makes the value from the text, in slices
 * @throws Error with the line, when the text is wrong
 */
export async function readApart<T>(
  given: TextToRead,
  make: (text: string, nextSlice: () => Promise<void>) => Promise<T>,
): Promise<{ readonly value: T; readonly text: TextVersion }> {
  const thread = new Worker(programUrl('processes/access/read-apart-thread'), {
    workerData: given,
    resourceLimits: { maxOldGenerationSizeMb: MOST_MEGABYTES },
  })
  thread.unref()
  const [answer] = (await once(thread, 'message')) as [ReadApart]
  if ('wrong' in answer) throw new Error(answer.wrong)
  knowSound(answer.sound)
  return { value: await make(given.text, () => nextLoopPass()), text: answer.version }
}
