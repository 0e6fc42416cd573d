import { expect, it } from 'vitest'
import { eventsDocument } from './support/events-document.ts'

it('docs/events.md shows the events as they are', async () => {
  // npm run docs:events writes it anew.
  await expect(eventsDocument()).toMatchFileSnapshot('../docs/events.md')
})
