import { fork } from 'node:child_process'
import type { ErasureResult } from '../../src/erasure/erasure-store.ts'
import { ERASURE_SECRET } from './erasure-bed.ts'

const PROGRAM = new URL('./erasing-process.mjs', import.meta.url).pathname

/** The effect before which the process dies, at its nth time from 1 on. */
export interface Death {
  readonly effect: string
  readonly nth: number
}

/** The end of a process: `dead` if it was killed, otherwise its effects in order and the result of the erasure. */
export type ErasingEnd =
  | { readonly kind: 'dead' }
  | { readonly kind: 'done'; readonly effects: readonly string[]; readonly result: ErasureResult }

/** Carries out an erasure in a process of the built program, on the data of an `ErasureBed`. */
export function eraseInProcess(
  data: { readonly database: string; readonly root: string; readonly id: string },
  kill?: Death,
): Promise<ErasingEnd> {
  const given = JSON.stringify({ ...data, secret: ERASURE_SECRET, kill })
  const child = fork(PROGRAM, [given], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  let effects: readonly string[] = []
  let result: ErasureResult | undefined
  child.on('message', (message: { readonly effects?: readonly string[]; readonly result?: ErasureResult }) => {
    effects = message.effects ?? effects
    result = message.result ?? result
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) => {
      if (signal === 'SIGKILL') resolve({ kind: 'dead' })
      else if (result) resolve({ kind: 'done', effects, result })
      else reject(new Error(`The process of the erasure ended with ${code ?? signal}`))
    })
  })
}
