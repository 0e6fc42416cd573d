import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { settingsMarkdown } from '../../src/config/settings-documentation.ts'

it('docs/configuration.md shows the settings as they are', () => {
  // To mend it: replace the table there by the received text.
  const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8')
  expect(page.slice(page.indexOf('| flag |')).trim()).toBe(settingsMarkdown())
})
