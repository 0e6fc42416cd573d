import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'

/** A directory that compares names by RFC 4518: it ignores width, case, soft hyphens, spaces and invisible characters. */
export interface LenientDirectory {
  readonly url: string
  /** The names of all bind requests, in order. */
  readonly asked: readonly string[]
  stop(): Promise<void>
}

/** @param passwords passwords by distinguished name in lower case */
export async function startLenientDirectory(passwords: Readonly<Record<string, string>>): Promise<LenientDirectory> {
  const asked: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      const message = element(bytes, 0)
      const id = element(bytes, message.from)
      const operation = element(bytes, id.to)
      if (operation.tag === 0x42) return void socket.end()
      const version = element(bytes, operation.from)
      const dn = element(bytes, version.to)
      const password = element(bytes, dn.to)
      const name = bytes.toString('utf8', dn.from, dn.to)
      asked.push(name)
      const isRight = passwords[prepared(name)] === bytes.toString('utf8', password.from, password.to)
      const result = [0x0a, 0x01, isRight ? 0x00 : 0x31, 0x04, 0x00, 0x04, 0x00]
      const answer = [...bytes.subarray(id.from - 2, id.to), 0x61, result.length, ...result]
      socket.write(Buffer.from([0x30, answer.length, ...answer]))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `ldap://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    stop: () => new Promise((resolve) => void server.close(() => resolve())),
  }
}

/** The tag and the bytes of a BER value. */
function element(bytes: Buffer, at: number): { readonly tag: number; readonly from: number; readonly to: number } {
  const first = bytes[at + 1]!
  const more = first & 0x80 ? first & 0x7f : 0
  const length = more === 0 ? first : bytes.readUIntBE(at + 2, more)
  const from = at + 2 + more
  return { tag: bytes[at]!, from, to: from + length }
}

function prepared(name: string): string {
  const seen = name.replaceAll(/[\p{Default_Ignorable_Code_Point}\p{Cf}\ufffc]/gu, '')
  return seen
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/ +/g, ' ')
    .replaceAll(/= | (?=,|$)/g, (part) => part.replace(' ', ''))
}
