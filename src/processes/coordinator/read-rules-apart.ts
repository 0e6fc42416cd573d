import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { knowSound } from '../../security/rules/java-regex.ts'
import { readRulesInTurns } from '../../security/rules/read-rules.ts'
import { accessRulesOf, type AccessRules } from '../../security/rules/rules-file.ts'
import type { TextVersion } from './text-version.ts'

/** What the thread is given. */
export interface RulesToRead {
  readonly text: string
  readonly key: Uint8Array
}

/** What it answers: which expressions it compiled, or the line that is wrong. */
export type ReadRules =
  { readonly sound: readonly string[]; readonly version: TextVersion } | { readonly wrong: string }

const MOST_MEGABYTES = 1024

/**
 * Rules that have changed: a thread looks whether all of the text is right, which takes seconds of ten thousand rules, and
 * they are made of it here a little at a time.
 * @throws Error with the line, when the text is wrong
 */
export async function readRulesApart(
  given: RulesToRead,
): Promise<{ readonly value: AccessRules; readonly text: TextVersion }> {
  const thread = new Worker(new URL('./rules-thread.js', import.meta.url), {
    workerData: given,
    resourceLimits: { maxOldGenerationSizeMb: MOST_MEGABYTES },
  })
  thread.unref()
  const [answer] = (await once(thread, 'message')) as [ReadRules]
  if ('wrong' in answer) throw new Error(answer.wrong)
  knowSound(answer.sound)
  const read = await readRulesInTurns(given.text, () => nextTurn())
  return { value: accessRulesOf(read), text: answer.version }
}
