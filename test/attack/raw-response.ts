/** A response as parsed from the bytes of a connection. */
export interface RawResponse {
  readonly status: number
  /** Names are in lower case. If a name is repeated, the last value counts. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
}

/**
 * Parses the bytes of a connection strictly as HTTP/1.1 responses, because a lenient client could be misled.
 * @returns `wrong`: the first violation of HTTP. A response that is cut at its end is no violation.
 */
export function parseResponses(bytes: Buffer): { readonly responses: readonly RawResponse[]; readonly wrong?: string } {
  const responses: RawResponse[] = []
  let rest = bytes
  while (rest.length > 0) {
    const end = rest.indexOf('\r\n\r\n')
    if (end < 0) {
      const begins = /^HTTP\/1\.1 \d{3}/.test(rest.toString('latin1', 0, 12))
      return begins ? { responses } : { responses, wrong: JSON.stringify(rest.toString('latin1', 0, 80)) }
    }
    const [first, ...lines] = rest.toString('latin1', 0, end).split('\r\n')
    const status = /^HTTP\/1\.1 (\d{3}) [\x20-\x7e]*$/.exec(first!)?.[1]
    if (status === undefined) return { responses, wrong: `status line ${JSON.stringify(first)}` }
    const headers = new Map<string, string>()
    for (const line of lines) {
      const match = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e\x80-\xff\t]*)$/.exec(line)
      if (!match) return { responses, wrong: `header ${JSON.stringify(line)}` }
      const name = match[1]!.toLowerCase()
      if (name === 'content-length' && headers.has(name)) return { responses, wrong: 'two lengths' }
      headers.set(name, match[2]!)
    }
    if (headers.has('content-length') && headers.has('transfer-encoding')) return { responses, wrong: 'two framings' }
    rest = rest.subarray(end + 4)
    const framed = bodyOf(Number(status), headers, rest)
    if ('wrong' in framed) return { responses, wrong: framed.wrong }
    responses.push({ status: Number(status), headers, body: framed.body })
    rest = rest.subarray(framed.length)
  }
  return { responses }
}

type Framed = { readonly body: Buffer; readonly length: number } | { readonly wrong: string }

function bodyOf(status: number, headers: ReadonlyMap<string, string>, rest: Buffer): Framed {
  const none = { body: Buffer.alloc(0), length: 0 }
  if (status < 200 || status === 204 || status === 304) return none
  if (headers.get('transfer-encoding') === 'chunked') return chunked(rest)
  const length = headers.get('content-length')
  // The answer to HEAD has a length but no body: the next answer or nothing follows.
  if (length !== undefined) {
    if (!/^\d+$/.test(length)) return { wrong: `length ${length}` }
    if (rest.length === 0 || rest.toString('latin1', 0, 9) === 'HTTP/1.1 ') return none
    return { body: rest.subarray(0, Number(length)), length: Number(length) }
  }
  return { body: rest, length: rest.length }
}

function chunked(rest: Buffer): Framed {
  const parts: Buffer[] = []
  let at = 0
  for (;;) {
    const line = rest.indexOf('\r\n', at)
    // The answer is cut, because the case stopped reading: a feed of events has no end.
    if (line < 0) return { body: Buffer.concat(parts), length: rest.length }
    const size = rest.toString('latin1', at, line)
    if (!/^[0-9a-f]+$/i.test(size)) return { wrong: `chunk size ${JSON.stringify(size.slice(0, 40))}` }
    const bytes = Number.parseInt(size, 16)
    const next = line + 2 + bytes + 2
    if (next > rest.length) return { body: Buffer.concat(parts), length: rest.length }
    parts.push(rest.subarray(line + 2, line + 2 + bytes))
    at = next
    if (bytes === 0) return { body: Buffer.concat(parts), length: at }
  }
}
