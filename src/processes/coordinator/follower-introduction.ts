import {
  acceptKey,
  introduceKey,
  introducedKeySchema,
  type IntroducerParts,
  type KeyIntroduction,
} from '../../coordinator/system/key-introductions.ts'
import { fingerprint } from '../../events/audit/anchor.ts'
import { vouchFor } from '../../events/audit/anchor-keys.ts'

export interface FollowerIntroductionDeps {
  /** @throws ExitError where the key cannot be read */
  readonly parts: () => IntroducerParts
  /** @returns the writer's answer; undefined when it took nothing */
  readonly post: (introduction: KeyIntroduction) => Promise<unknown>
  /** Calls back each time when another coordinator writes. @returns a function that ends it */
  readonly onWriterChanged: (listener: () => void) => () => void
  readonly onTrouble: (error: unknown) => void
}

const FIRST_AGAIN_MS = 500
const MOST_AGAIN_MS = 30_000

/**
 * A coordinator that follows shows the key that it would sign anchors with to the one that writes, and vouches for that
 * one's key: after a take-over each of the two keys leads to the other. It is tried until the writer has taken it.
 */
export function startFollowerIntroduction(deps: FollowerIntroductionDeps): { stop(): void } {
  let timer: NodeJS.Timeout | undefined
  let stopped = false
  let again = FIRST_AGAIN_MS

  async function introduce(): Promise<boolean> {
    const parts = deps.parts()
    const shown = introduceKey(parts)
    const { data } = introducedKeySchema.safeParse(await deps.post(shown))
    if (!data) return false
    const writers = acceptKey(parts, data)
    // Whoever answers without the secret of the cluster gets no signature.
    if (!writers) throw new Error('The coordinator that writes does not prove that its key belongs to this cluster')
    if (fingerprint(writers) === fingerprint(parts.key.public)) return true
    const { signature: vouch } = vouchFor(writers, parts.logId, parts.key)
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
