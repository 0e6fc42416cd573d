import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'

/** A browser without scripts: it handles cookies by host, redirects, forms and `refresh`. */
export interface PlainBrowser {
  /** Opens the page at the end of all redirects of this address. */
  open(address: string): Promise<ShownPage>
  /** Sends the form of a page, with these additional fields. */
  submit(page: ShownPage, fields?: Readonly<Record<string, string>>, action?: string): Promise<ShownPage>
  /** All addresses to which it was sent, whatever their answers. */
  readonly visited: readonly string[]
  /** Every received Set-Cookie header. */
  readonly set: readonly string[]
  /** The cookies of a host as `name=value`, in the form of a request header. */
  cookies(host: string): string
}

export interface ShownPage {
  readonly address: string
  readonly status: number
  readonly text: string
  readonly headers: IncomingHttpHeaders
}

export function createPlainBrowser(): PlainBrowser {
  const jar = new Map<string, Map<string, string>>()
  const visited: string[] = []
  const set: string[] = []
  const cookies = (host: string, path = '/'): string =>
    [...(jar.get(host) ?? [])]
      .flatMap(([key, value]) => {
        const [of, name] = key.split(' ')
        return path.startsWith(of!) ? [`${name!}=${value}`] : []
      })
      .join('; ')

  async function go(address: string, from: string | undefined, init: Sent = {}): Promise<ShownPage> {
    const url = new URL(address)
    visited.push(address)
    const cookie = cookies(url.hostname + url.port, url.pathname)
    const answer = await exchange(url, init, {
      accept: 'text/html',
      'sec-fetch-mode': 'navigate',
      'sec-fetch-dest': 'document',
      'sec-fetch-site':
        from === undefined ? 'none' : new URL(from).origin === url.origin ? 'same-origin' : 'cross-site',
      ...(cookie === '' ? {} : { cookie }),
    })
    keep(url, answer.headers)
    const { text } = answer
    const { location } = answer.headers
    if (location !== undefined) return go(new URL(location, url).href, address)
    const refresh = /http-equiv="refresh" content="0;url=([^"]+)"/.exec(text)?.[1]
    if (refresh !== undefined) return go(new URL(plain(refresh), url).href, address)
    return { address, status: answer.status, text, headers: answer.headers }
  }

  function keep({ hostname, port }: URL, headers: IncomingHttpHeaders): void {
    const own = jar.get(hostname + port) ?? new Map<string, string>()
    jar.set(hostname + port, own)
    for (const one of headers['set-cookie'] ?? []) {
      set.push(one)
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(one)!
      const key = `${/;\s*path=([^;]+)/i.exec(one)?.[1] ?? '/'} ${name!}`
      if (/Max-Age=0|expires=Thu, 01 Jan 1970/i.test(one)) own.delete(key)
      else own.set(key, value!)
    }
  }

  return {
    visited,
    set,
    cookies,
    open: (address) => go(address, undefined),
    submit(page, fields = {}, wanted) {
      const forms = [...page.text.matchAll(/<form\b([^>]*)>([\s\S]*?)<\/form>/g)]
      const actionOf = (attributes: string): string => plain(/\baction="([^"]*)"/.exec(attributes)?.[1] ?? '')
      const form = forms.find(([, attributes]) => wanted === undefined || actionOf(attributes!) === wanted)
      if (!form) throw new Error(`No form leads there on ${page.address}: ${page.text}`)
      const values = new URLSearchParams()
      for (const [input] of form[2]!.matchAll(/<input\b[^>]*>/g)) {
        const [name, value] = [/\bname="([^"]*)"/.exec(input)?.[1], /\bvalue="([^"]*)"/.exec(input)?.[1]]
        if (name !== undefined && value !== undefined) values.set(plain(name), plain(value))
      }
      for (const [name, value] of Object.entries(fields)) values.set(name, value)
      const address = new URL(actionOf(form[1]!), page.address).href
      return go(address, page.address, {
        method: 'POST',
        body: values.toString(),
        headers: { origin: new URL(page.address).origin, 'content-type': 'application/x-www-form-urlencoded' },
      })
    },
  }
}

interface Sent {
  readonly method?: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends a request without `fetch` of Node, which always sends `Sec-Fetch-Mode: cors`. */
function exchange(
  url: URL,
  { method, body, headers }: Sent,
  more: Readonly<Record<string, string>>,
): Promise<{ readonly status: number; readonly headers: IncomingHttpHeaders; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url, { method: method ?? 'GET', headers: { ...more, ...headers } }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (part: string) => (text += part))
      answer.on('end', () => resolve({ status: answer.statusCode!, headers: answer.headers, text }))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

function plain(text: string): string {
  const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
  return text.replaceAll(/&(\w+|#39);/g, (_all, name: string) => entities[name] ?? '')
}
