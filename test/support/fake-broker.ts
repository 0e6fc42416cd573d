import { createServer, type AddressInfo, type Socket } from 'node:net'
import { createServer as createTlsServer, type TlsOptions, type TLSSocket } from 'node:tls'

/** A listener in place of a Kafka broker, with the bytes and certificates of its clients. */
export interface FakeBroker {
  readonly address: string
  /** All bytes of the clients, one character for each byte. */
  text(): string
  /** The names in the certificates of the clients. */
  readonly clients: readonly string[]
  close(): Promise<void>
}

const SASL_HANDSHAKE = 17
const API_VERSIONS = 18
const METADATA = 3
const CREATE_TOPICS = 19
const SASL_AUTHENTICATE = 36
const MECHANISMS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512']

/** Lists its request versions, accepts every user, and answers no other request. */
export async function startFakeBroker(tls?: TlsOptions): Promise<FakeBroker> {
  let reported = ''
  const clients: string[] = []
  const sockets = new Set<Socket>()
  const serve = (socket: Socket): void => {
    sockets.add(socket)
    let rest = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.on('data', (part: Buffer) => {
      reported += part.toString('latin1')
      rest = Buffer.concat([rest, part])
      while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0)) {
        const end = 4 + rest.readInt32BE(0)
        const request = rest.subarray(4, end)
        rest = rest.subarray(end)
        const body = answerTo(request.readInt16BE(0), socket.localPort!)
        if (!body) continue
        const head = Buffer.alloc(8)
        head.writeInt32BE(4 + body.length, 0)
        head.writeInt32BE(request.readInt32BE(4), 4)
        socket.write(Buffer.concat([head, body]))
      }
    })
  }
  const server = tls
    ? createTlsServer({ ...tls, requestCert: true }, (socket: TLSSocket) => {
        const { subject } = socket.getPeerCertificate()
        if (subject) clients.push(String(subject.CN))
        serve(socket)
      })
    : createServer(serve)
  server.on('tlsClientError', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    text: () => reported,
    clients,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

function answerTo(request: number, port: number): Buffer | undefined {
  switch (request) {
    case METADATA:
      // The broker itself as the controller, and no topic.
      return Buffer.concat([int32(1), int32(1), text('127.0.0.1'), int32(port), int16(-1), int32(1), int32(0)])
    case API_VERSIONS: {
      const known = [
        [METADATA, 0, 1],
        [SASL_HANDSHAKE, 0, 1],
        [API_VERSIONS, 0, 2],
        [CREATE_TOPICS, 0, 1],
        [SASL_AUTHENTICATE, 0, 0],
      ] as const
      return Buffer.concat([int16(0), int32(known.length), ...known.flat().map(int16), int32(0)])
    }
    case SASL_HANDSHAKE:
      return Buffer.concat([int16(0), int32(MECHANISMS.length), ...MECHANISMS.map(text)])
    case SASL_AUTHENTICATE:
      return Buffer.concat([int16(0), int16(-1), int32(0)])
    default:
      return undefined
  }
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeInt16BE(value)
  return bytes
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

function text(value: string): Buffer {
  return Buffer.concat([int16(value.length), Buffer.from(value)])
}
