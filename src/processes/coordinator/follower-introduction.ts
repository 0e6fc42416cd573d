import {
  acceptKey,
  introduceKey,
  introducedKeySchema,
  type IntroducerDeps,
  type KeyIntroduction,
} from '../../coordinator/system/key-introductions.ts'
import { fingerprint } from '../../events/audit/anchor.ts'
import { vouchFor } from '../../events/audit/anchor-keys.ts'

export interface FollowerIntroductionDeps {
  /** @throws ExitError when the key cannot be read */
  readonly introducer: () => IntroducerDeps
  /** @returns the writer's answer; undefined if it accepted nothing */
  readonly post: (introduction: KeyIntroduction) => Promise<unknown>
  /** Calls back each time another coordinator becomes the writer. @returns a function that ends it */
  readonly onWriterChanged: (listener: () => void) => () => void
  readonly onTrouble: (error: unknown) => void
}

const FIRST_AGAIN_MS = 500
const MOST_AGAIN_MS = 30_000

/**
 * Exchanges anchor keys with the writer: a follower shows the key with which it would sign anchors, and vouches for the
 * writer's key. After a take-over, each of the two keys leads to the other. Retries until the writer has accepted it.
 */
export function startFollowerIntroduction(deps: FollowerIntroductionDeps): { stop(): void } {
  let timer: NodeJS.Timeout | undefined
  let stopped = false
  let again = FIRST_AGAIN_MS

  async function introduce(): Promise<boolean> {
    const introducer = deps.introducer()
    const shown = introduceKey(introducer)
    const { data } = introducedKeySchema.safeParse(await deps.post(shown))
    if (!data) return false
    const writers = acceptKey(introducer, data)
    // A server that answers without the cluster's secret gets no signature.
    if (!writers) throw new Error('The writer does not prove that its key belongs to this cluster')
    if (fingerprint(writers) === fingerprint(introducer.key.public)) return true
    const { signature: vouch } = vouchFor(writers, introducer.logId, introducer.key)
    return introducedKeySchema.safeParse(await deps.post({ ...shown, vouch })).success
  }

  async function run(): Promise<void> {
    const done = await introduce().catch((error: unknown) => {
      deps.onTrouble(error)
      return false
    })
    if (done || stopped) return
    timer = setTimeout(() => void run(), again)
    timer.unref()
    again = Math.min(2 * again, MOST_AGAIN_MS)
  }

  function restart(): void {
    clearTimeout(timer)
    again = FIRST_AGAIN_MS
    void run()
  }

  const unsubscribe = deps.onWriterChanged(restart)
  restart()
  return {
    stop() {
      stopped = true
      clearTimeout(timer)
      unsubscribe()
    },
  }
}
