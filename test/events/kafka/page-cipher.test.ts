import { createCipheriv, randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { openPage, sealPage } from '../../../src/events/kafka/page-cipher.ts'

const key = randomBytes(32)
const page = Buffer.from('[["a"]]')

/** Seals a page as earlier versions did: in form 1, directly with the cluster's key. */
function sealedBefore(stream: string, token: number): Buffer {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(Buffer.from(`${stream}/${token}`))
  const sealed = Buffer.concat([cipher.update(page), cipher.final()])
  return Buffer.concat([Buffer.of(1), nonce, cipher.getAuthTag(), sealed])
}

it('A sealed page opens only with its query, its token and the key of its cluster', () => {
  const sealed = sealPage(key, 'q1', 7, page)
  expect(openPage(key, 'q1', 7, sealed)).toEqual(page)
  expect(openPage(key, 'q2', 7, sealed)).toBeUndefined()
  expect(openPage(key, 'q1', 8, sealed)).toBeUndefined()
  expect(openPage(randomBytes(32), 'q1', 7, sealed)).toBeUndefined()
  for (let at = 0; at < sealed.length; at++) {
    const altered = Buffer.from(sealed)
    altered[at]! ^= 1
    expect(openPage(key, 'q1', 7, altered)).toBeUndefined()
  }
  for (let length = 0; length < sealed.length; length++)
    expect(openPage(key, 'q1', 7, sealed.subarray(0, length))).toBeUndefined()
})

it('`openPage` opens pages of earlier versions', () => {
  expect(openPage(key, 'q1', 7, sealedBefore('q1', 7))).toEqual(page)
  expect(openPage(key, 'q2', 7, sealedBefore('q1', 7))).toBeUndefined()
})

it('`sealPage` uses a key of the query, not the key of the cluster', () => {
  // With the same key, a page moved to another query could open once its authenticated name was changed.
  const sealed = sealPage(key, 'q1', 7, page)
  const asForm1 = Buffer.concat([Buffer.of(1), sealed.subarray(1)])
  expect(openPage(key, 'q1', 7, asForm1)).toBeUndefined()
})
