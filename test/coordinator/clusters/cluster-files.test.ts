import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { readClusterFiles } from '../../../src/coordinator/clusters/cluster-files.ts'
import { createAuthority } from '../../support/certificates.ts'
import { temporaryFolder } from '../../support/quipu-process.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())

const small = { url: 'https://trino-a.example:8443', group: 'big' }
const read = (files: Readonly<Record<string, unknown>>) => readClusterFiles(JSON.stringify(textsOf(files)), folder.path)
const textsOf = (files: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(files).map(([name, file]) => [name, JSON.stringify(file, undefined, 2)]))
const mistake = (change: object, name = 'trino-a.json') => {
  try {
    read({ [name]: { ...small, ...change } })
  } catch (error) {
    return (error as Error).message
  }
  return undefined
}

describe('A cluster file', () => {
  it('has defaults for all but address and group', async () => {
    const [cluster] = read({ 'trino-a.json': small }).clusters
    expect(cluster).toMatchObject({
      name: 'trino-a',
      group: 'big',
      weight: 1,
      mirrors: new Set(),
      runAs: 'caller',
      enforcesAccess: false,
      clientTimeoutMs: 300_000,
      healthPath: '/v1/info',
      tls: undefined,
    })
    expect(cluster!.url.origin).toBe('https://trino-a.example:8443')
    expect(await cluster!.credentials()).toEqual({})
  })

  it('takes all keys, and reads passwords and tokens at each use', async () => {
    const full = {
      ...small,
      weight: 2,
      maxRunning: 40,
      catalogs: ['hive', 'iceberg'],
      mirrors: ['lake'],
      runAs: 'caller',
      enforcesAccess: true,
      clientTimeout: '90s',
      health: '/health?deep',
      authentication: { type: 'password', user: 'quipu', passwordFile: 'a.secret' },
      certFile: null,
    }
    const token = { ...small, authentication: { type: 'token', tokenFile: join(folder.path, 'b.secret') } }
    const [first, second] = read({ 'a.json': full, 'b.json': token }).clusters
    expect(first).toMatchObject({ maxRunning: 40, clientTimeoutMs: 90_000, healthPath: '/health?deep' })
    expect(first!.catalogs).toEqual(new Set(['hive', 'iceberg']))
    await expect(first!.credentials()).rejects.toThrow('ENOENT')
    for (const secret of ['one', 'two']) {
      writeFileSync(join(folder.path, 'a.secret'), `${secret}\n`)
      writeFileSync(join(folder.path, 'b.secret'), secret)
      expect(await first!.credentials()).toEqual({
        authorization: `Basic ${Buffer.from(`quipu:${secret}`).toString('base64')}`,
      })
      expect(await second!.credentials()).toEqual({ authorization: `Bearer ${secret}` })
    }
    writeFileSync(join(folder.path, 'b.secret'), '\n')
    await expect(second!.credentials()).rejects.toThrow('is no password or token')
  })

  it('names the file and the line of a mistake', () => {
    expect(mistake({ wieght: 2 })).toBe('trino-a.json, line 4: Unrecognized key: "wieght"')
    expect(mistake({ group: 'a b' })).toMatch(/^trino-a\.json, line 3: group: /)
    expect(mistake({ url: 'ftp://trino' })).toContain('url: is no address of the form')
    expect(mistake({ url: 'https://me:s3cret@trino' })).toBe(
      'trino-a.json, line 2: url: has no credentials: authentication names them',
    )
    expect(mistake({ url: 'https://trino/ui' })).toContain('has a scheme, a host and a port alone')
    expect(mistake({ clientTimeout: '5 apples' })).toContain("'5 apples' is no duration")
    expect(mistake({ authentication: { type: 'password', user: 'a', password: 'b' } })).toContain('passwordFile')
    expect(mistake({ health: 'v1/info' })).toContain('begins with /')
    expect(mistake({}, 'Trino.json')).toContain('Trino.json, line 1: The name of a cluster file')
    expect(() => readClusterFiles('{"a.json": "{"}', folder.path)).toThrow('a.json, line 1: The file is not JSON')
    expect(() => read(Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`c${i}.json`, small])))).toThrow(
      'There are 101 cluster files',
    )
  })

  it('sends no credentials over plain HTTP, and plain HTTP to another machine only if it says so', () => {
    expect(mistake({ url: 'http://trino:8080' })).toContain('needs "insecure": true')
    expect(mistake({ url: 'http://trino:8080', insecure: true })).toBeUndefined()
    expect(mistake({ url: 'http://127.0.0.1:8080' })).toBeUndefined()
    const authentication = { type: 'token', tokenFile: 't' }
    expect(mistake({ url: 'http://trino:8080', insecure: true, authentication })).toContain('https:// only')
    expect(mistake({ authentication: { type: 'certificate' } })).toContain('needs https://, certFile and keyFile')
  })

  it('has certificates that can be used', async () => {
    const authority = await createAuthority()
    const { cert, key } = await authority.issue('client')
    const files = { caFile: authority.ca, certFile: cert, keyFile: key, authentication: { type: 'certificate' } }
    const { clusters, tlsFiles } = read({ 'a.json': { ...small, ...files } })
    expect(Object.keys(clusters[0]!.tls!)).toEqual(['ca', 'cert', 'key'])
    expect(tlsFiles).toEqual([authority.ca, cert, key])
    expect(mistake({ caFile: 'none.pem' })).toContain('ENOENT')
    expect(mistake({ certFile: cert, keyFile: cert })).toContain('The certificates cannot be used')
    expect(mistake({ certFile: cert })).toContain('certFile and keyFile come together')
    await authority.remove()
  })
})
