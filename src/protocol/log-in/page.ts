import type { ServerResponse } from 'node:http'
import { element, writeDocument, type PageElement, type PagePart } from '../../shared/page-elements.ts'

export interface Page {
  readonly title: string
  readonly body: readonly PagePart[]
  /** The address that the browser goes to by itself. That is a new navigation, which begins at this page. */
  readonly onward?: string
}

/** No scripts, nothing from other servers, no framing, forms to this server only. */
const POLICY =
  "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

/**
 * Sends a page.
 * @param headers in addition to those of every page
 */
export function sendPage(
  response: ServerResponse,
  status: number,
  page: Page,
  headers: Readonly<Record<string, string | readonly string[]>> = {},
): void {
  const bytes = Buffer.from(writeDocument(documentOf(page)))
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-length': bytes.length,
    'cache-control': 'no-store',
    'content-security-policy': POLICY,
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    // Browsers send the Origin of a form only where the policy allows a Referer.
    'referrer-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
    ...(headers as Record<string, string | string[]>),
  })
  response.end(response.req.method === 'HEAD' ? undefined : bytes)
}

function documentOf({ title, body, onward }: Page): PageElement {
  const refresh = onward === undefined ? [] : [element('meta', { 'http-equiv': 'refresh', content: `0;url=${onward}` })]
  return element(
    'html',
    { lang: 'en' },
    element(
      'head',
      {},
      element('meta', { charset: 'utf-8' }),
      element('meta', { name: 'viewport', content: 'width=device-width, initial-scale=1' }),
      ...refresh,
      element('title', {}, `${title} · Quipu`),
      element('link', { rel: 'icon', href: 'data:,' }),
      element('link', { rel: 'stylesheet', href: '/ui/app.css' }),
    ),
    element(
      'body',
      {},
      element('header', {}, element('strong', { class: 'brand' }, 'Quipu')),
      element('main', {}, element('h1', {}, title), ...body),
    ),
  )
}
