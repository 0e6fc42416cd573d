import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

const HALF_BYTES = 8

/**
 * Makes the id of a new replay of a user. The id proves its owner to any process with the key, so that nothing must be
 * stored.
 */
export function newReplayId(key: Buffer, user: string): string {
  const random = randomBytes(HALF_BYTES)
  return Buffer.concat([random, macOf(key, random, user)]).toString('hex')
}

/** Whether this id was issued to that user, by any coordinator of the cluster. */
export function isReplayOf(key: Buffer, replayId: string, user: string): boolean {
  if (!/^[0-9a-f]{32}$/.test(replayId)) return false
  const bytes = Buffer.from(replayId, 'hex')
  return timingSafeEqual(bytes.subarray(HALF_BYTES), macOf(key, bytes.subarray(0, HALF_BYTES), user))
}

function macOf(key: Buffer, random: Buffer, user: string): Buffer {
  return createHmac('sha256', key).update(random).update(user).digest().subarray(0, HALF_BYTES)
}
