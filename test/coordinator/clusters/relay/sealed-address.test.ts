import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createAddressSeal, type RelayedPage } from '../../../../src/coordinator/clusters/relay/sealed-address.ts'
import type { RemoteUri } from '../../../../src/coordinator/clusters/relay/relay-port.ts'
import { taskId } from '../../../../src/shared/ids.ts'
import { QUERY_ID } from '../../../support/query-events.ts'
import { createStatementUris, statementPath } from '../../../../src/protocol/statement/next-uri.ts'

const seal = createAddressSeal(Buffer.alloc(32, 7))
const page: RelayedPage = {
  attempt: 1,
  cluster: 'trino-a',
  uri: '/v1/statement/executing/20261127_115943_00001_abcde/y0123/2?a=é' as RemoteUri,
  rowsSent: true,
}

describe('A sealed page', () => {
  it('opens for its query and token, with its key, and for no other', () => {
    const sealed = seal.sealPage(QUERY_ID, 3, page)
    expect(seal.openPage(QUERY_ID, 3, sealed)).toEqual(page)
    expect(createAddressSeal(Buffer.alloc(32, 7)).openPage(QUERY_ID, 3, sealed)).toEqual(page)
    expect(seal.openPage(QUERY_ID, 4, sealed)).toBeUndefined()
    expect(seal.openPage('20261127_115943_00002_abcde' as typeof QUERY_ID, 3, sealed)).toBeUndefined()
    expect(createAddressSeal(Buffer.alloc(32, 8)).openPage(QUERY_ID, 3, sealed)).toBeUndefined()
    expect(seal.openUri(taskId(QUERY_ID, 1, 0), sealed)).toBeUndefined()
  })

  it('is the same text each time, and does not contain the address', () => {
    const sealed = seal.sealPage(QUERY_ID, 3, page)
    expect(seal.sealPage(QUERY_ID, 3, { ...page })).toBe(sealed)
    expect(Buffer.from(sealed, 'base64url').includes('executing')).toBe(false)
    expect(seal.sealPage(QUERY_ID, 4, page).slice(0, 16)).not.toBe(sealed.slice(0, 16))
  })

  it('does not open after any change', () => {
    const sealed = seal.sealPage(QUERY_ID, 3, page)
    fc.assert(
      fc.property(
        fc.nat(sealed.length - 1),
        fc.constantFrom(...'ABCDEFGHabcdefgh0123456789-_=+/.'),
        fc.boolean(),
        (at, letter, cut) => {
          const changed = sealed.slice(0, at) + letter + (cut ? '' : sealed.slice(at + 1))
          expect(seal.openPage(QUERY_ID, 3, changed)).toEqual(changed === sealed ? page : undefined)
        },
      ),
    )
    for (const text of ['', 'A', 'AAAA', sealed.slice(1), `${sealed}A`])
      expect(seal.openPage(QUERY_ID, 3, text)).toBeUndefined()
  })

  it('opens for its task only', () => {
    const sealed = seal.sealUri(taskId(QUERY_ID, 1, 0), page.uri)
    expect(seal.openUri(taskId(QUERY_ID, 1, 0), sealed)).toBe(page.uri)
    expect(seal.openUri(taskId(QUERY_ID, 1, 1), sealed)).toBeUndefined()
  })
})

describe('A nextUri', () => {
  const uris = createStatementUris('a secret of the test')
  const pathOf = (uri: string) => statementPath(new URL(uri).pathname)!

  it('carries the sealed page of a cluster, or none, as in earlier versions', () => {
    const relayed = uris.nextUri('http://here:8080', QUERY_ID, 5, page)
    expect(uris.verifyPage(pathOf(relayed))).toEqual({ queryId: QUERY_ID, token: 5, relayed: page })
    const plain = uris.nextUri('http://here:8080', QUERY_ID, 5)
    expect(plain).toMatch(/\/5\.[\w-]{22}$/)
    expect(uris.verifyPage(pathOf(plain))).toEqual({ queryId: QUERY_ID, token: 5 })
  })

  it('is not accepted with the token of another page', () => {
    const { id, segment } = pathOf(uris.nextUri('http://here:8080', QUERY_ID, 5, page))
    expect(uris.verifyPage({ id, segment: segment.replace('5.', '6.') })).toBeUndefined()
    expect(uris.verifyPage({ id, segment: segment.slice(0, 24) })).toBeUndefined()
  })
})
