import axe from 'axe-core'
import type { Router } from 'express'
import { chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { createUiRoutes } from '../../src/ui/ui-routes.ts'
import { builtConsole } from './built-console.ts'
import { CHROMIUM } from './chromium.ts'
import { serve, type HttpApp } from './http-app.ts'

/** Chromium with one page for all tests of a file: a further page of its own would cost each test a second of CPU. */
export interface CheckedBrowser {
  /**
   * Opens an address and works with the page, which has no cookies and no stored data. Fails if the browser reports an
   * error, also one of the content security policy.
   */
  withPage(address: string, work: (page: Page) => Promise<void>): Promise<void>
  close(): Promise<void>
}

export async function openCheckedBrowser(): Promise<CheckedBrowser> {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
  let errors: string[] = []
  let opened: Page | undefined

  async function openPage(): Promise<Page> {
    const context = await browser.newContext({ acceptDownloads: true, reducedMotion: 'reduce' })
    const page = await context.newPage()
    page.setDefaultTimeout(60_000)
    page.on('pageerror', (error) => errors.push(error.message))
    page.on('console', (message) => {
      if (message.text().includes('Content Security Policy')) errors.push(message.text())
    })
    return page
  }

  return {
    async withPage(address, work) {
      const page = opened ?? (await openPage())
      // After a failure the next test has another page.
      opened = undefined
      errors = []
      await page.setViewportSize(VIEWPORT)
      await page.emulateMedia({ colorScheme: 'light' })
      await page.goto(address)
      await page.waitForSelector('h1')
      await work(page)
      expect(errors).toEqual([])
      await page.evaluate('localStorage.clear(); sessionStorage.clear()')
      await page.context().clearCookies()
      // The page must not ask the API of the next test.
      await page.goto('about:blank')
      opened = page
    },
    close: () => browser.close(),
  }
}

const VIEWPORT = { width: 1280, height: 720 }

/**
 * Opens Chromium and a server of the built console before the tests of a file or a group, and closes both after them.
 * Each test gives the server the API that its page uses.
 */
export function consoleBrowserOfTests() {
  let current: Router | undefined
  let app: HttpApp
  let browser: CheckedBrowser
  beforeAll(async () => {
    const api = ((request, response, next) => (current ? current(request, response, next) : next())) as Router
    app = await serve(api, createUiRoutes(await builtConsole()))
    browser = await openCheckedBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await app?.close()
  })
  return {
    async withPage(path: string, api: Router, work: (page: Page) => Promise<void>): Promise<void> {
      current = api
      await browser.withPage(`${app.base}${path}`, work)
    },
  }
}

/** The violations of accessibility that axe finds, by rule, each with the first element. */
export async function violations(page: Page): Promise<readonly string[]> {
  const cdp = await page.context().newCDPSession(page)
  const run = 'axe.run().then(({ violations }) => violations.map((one) => `${one.id}: ${one.nodes[0].html}`))'
  const evaluate = async (expression: string) =>
    (await cdp.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })).result
      .value as unknown
  try {
    // The source is large: a page reads it once.
    if ((await evaluate('typeof axe')) === 'undefined') await evaluate(`${axe.source};0`)
    return (await evaluate(run)) as readonly string[]
  } finally {
    await cdp.detach()
  }
}

/** How a page is shown. */
export interface Look {
  /** Width of the window, pixels. */
  readonly width: number
  readonly colorScheme: 'light' | 'dark'
}

/** Requires that axe finds nothing, in light and dark, and that the page is no wider than windows of 390 and 1,600 pixels. */
export async function expectAccessible(page: Page): Promise<void> {
  await expectAccessibleAs(page, { width: 390, colorScheme: 'light' })
  await expectAccessibleAs(page, { width: 1600, colorScheme: 'dark' })
}

/** Requires that axe finds nothing, and that the page is no wider than the window. */
export async function expectAccessibleAs(page: Page, { width, colorScheme }: Look): Promise<void> {
  await page.setViewportSize({ width, height: 900 })
  await page.emulateMedia({ colorScheme })
  await page.locator(`html[data-mantine-color-scheme=${colorScheme}]`).waitFor()
  // Colors change over time: axe would see one between light and dark. The end of a transition may begin another one, of
  // an element inside. `finished` is no use: Chromium resolves it with a frame, and a page at rest draws none.
  await page.evaluate(
    `for (let left; (left = document.getAnimations().filter((one) => one instanceof CSSTransition && one.playState !== 'finished')).length > 0;)
       for (const one of left) one.finish()`,
  )
  const look = `${new URL(page.url()).pathname}${new URL(page.url()).search}, ${width} pixels, ${colorScheme}`
  expect(await violations(page), look).toEqual([])
  expect(await page.evaluate('document.documentElement.scrollWidth'), look).toBeLessThanOrEqual(width)
}
