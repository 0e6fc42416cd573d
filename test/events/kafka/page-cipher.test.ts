import { createCipheriv, randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { openPage, sealPage } from '../../../src/events/kafka/page-cipher.ts'

const key = randomBytes(32)
const page = Buffer.from('[["a"]]')

/** As versions before sealed: form 1, with the cluster's key itself. */
function sealedBefore(stream: string, token: number): Buffer {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(Buffer.from(`${stream}/${token}`))
  const sealed = Buffer.concat([cipher.update(page), cipher.final()])
  return Buffer.concat([Buffer.of(1), nonce, cipher.getAuthTag(), sealed])
}

it('a page opens for its query and token alone, with the key of its cluster', () => {
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

it('pages of versions before are read', () => {
  expect(openPage(key, 'q1', 7, sealedBefore('q1', 7))).toEqual(page)
  expect(openPage(key, 'q2', 7, sealedBefore('q1', 7))).toBeUndefined()
})

it('no two queries share a key: what one is sealed with does not seal another', () => {
  // A page moved with its authenticated name changed would open, were the key the same.
  const sealed = sealPage(key, 'q1', 7, page)
  const asForm1 = Buffer.concat([Buffer.of(1), sealed.subarray(1)])
  expect(openPage(key, 'q1', 7, asForm1)).toBeUndefined()
})
