import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { settingsMarkdown } from '../../src/config/settings-documentation.ts'

it('docs/configuration.md lists the current settings', () => {
  // To update the page, replace its table by the received text.
  const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8')
  expect(page.slice(page.indexOf('| flag |')).trim()).toBe(settingsMarkdown())
})
