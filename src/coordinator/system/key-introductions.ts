import { createHmac, timingSafeEqual, type KeyObject } from 'node:crypto'
import { z } from 'zod'
import { fingerprint, type AnchorKey } from '../../events/audit/anchor.ts'
import {
  isVouchedBy,
  publicKeyText,
  readPublicKey,
  vouchFor,
  type AnchorKeyRecord,
} from '../../events/audit/anchor-keys.ts'
import type { SystemJournal } from './system-journal.ts'

/** The key of a coordinator, with a proof that the sender has the secret of the cluster. */
export const introducedKeySchema = z.object({
  /** SPKI, DER, base64. */
  publicKey: z.string().max(500),
  /** HMAC-SHA256, base64, by a key of the cluster over log and public key. */
  mac: z.string().max(100),
})
export type IntroducedKey = Readonly<z.infer<typeof introducedKeySchema>>

/** The message of a following coordinator to the writer. */
export const keyIntroductionSchema = introducedKeySchema.extend({
  /** The sender's signature for the writer's key, once the sender has seen that key. */
  vouch: z.string().max(200).optional(),
})
export type KeyIntroduction = Readonly<z.infer<typeof keyIntroductionSchema>>

export interface IntroducerDeps {
  readonly key: AnchorKey
  readonly logId: string
  /** Derived from the secret of the cluster. */
  readonly macKey: Buffer
}

/** Makes the introduction of a coordinator's own key to another coordinator. */
export function introduceKey({ key, logId, macKey }: IntroducerDeps): IntroducedKey {
  const publicKey = publicKeyText(key.public)
  return { publicKey, mac: macOf(macKey, logId, publicKey).toString('base64') }
}

/**
 * The key that another coordinator presents; undefined where it does not prove that it has the secret of the cluster.
 */
export function acceptKey({ logId, macKey }: Omit<IntroducerDeps, 'key'>, shown: IntroducedKey): KeyObject | undefined {
  const mac = Buffer.from(shown.mac, 'base64')
  const expected = macOf(macKey, logId, shown.publicKey)
  if (mac.length !== expected.length || !timingSafeEqual(mac, expected)) return undefined
  return readPublicKey(shown.publicKey)
}

/** On the writer: records its own key, and vouches for the keys of the followers. */
export interface KeyRegistrar {
  /** Records the own key, unless the log has it already. */
  recordOwn(): Promise<void>
  /**
   * Records that two coordinators vouch for each other's keys.
   * @returns the own key; undefined where the other coordinator has not proved that it belongs to the cluster
   */
  introduce(introduction: KeyIntroduction): Promise<IntroducedKey | undefined>
}

/** @param recorded the records that the log has already */
export function createKeyRegistrar(
  deps: IntroducerDeps & {
    readonly journal: Pick<SystemJournal, 'record'>
    readonly recorded: readonly AnchorKeyRecord[]
  },
): KeyRegistrar {
  const { key, logId, journal } = deps
  const own = fingerprint(key.public)
  const records = new Map(deps.recorded.map((record) => [nameOf(record), Promise.resolve()]))

  /** Records each pair of keys once. */
  function record(vouched: AnchorKeyRecord): Promise<void> {
    const name = nameOf(vouched)
    const before = records.get(name)
    if (before) return before
    const recording = journal.record('AnchorKeyVouched', vouched).then(() => {})
    records.set(name, recording)
    recording.catch(() => records.delete(name))
    return recording
  }

  return {
    recordOwn: () =>
      deps.recorded.some((one) => one.key === own && one.logId === logId)
        ? Promise.resolve()
        : record(vouchFor(key.public, logId, key)),
    async introduce({ vouch, ...shown }) {
      const other = acceptKey(deps, shown)
      if (!other) return undefined
      const introduced = introduceKey(deps)
      if (fingerprint(other) === own) return introduced
      await record(vouchFor(other, logId, key))
      const back = { logId, key: own, publicKey: introduced.publicKey, signedBy: fingerprint(other) }
      if (vouch !== undefined && isVouchedBy({ ...back, signature: vouch }, other))
        await record({ ...back, signature: vouch })
      return introduced
    },
  }
}

function nameOf({ key, signedBy }: AnchorKeyRecord): string {
  return `${key} ${signedBy}`
}

function macOf(macKey: Buffer, logId: string, publicKey: string): Buffer {
  return createHmac('sha256', macKey)
    .update(JSON.stringify([logId, publicKey]))
    .digest()
}
