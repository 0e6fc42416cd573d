import { expect, it } from 'vitest'
import { eventsDocument } from './support/events-document.ts'

it('docs/events.md lists the current events', async () => {
  // To update the page: npm run docs:events
  await expect(eventsDocument()).toMatchFileSnapshot('../docs/events.md')
})
