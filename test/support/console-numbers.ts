import type { Page } from 'playwright-core'

/**
 * Finds texts with a number that has no explanation. A number has an explanation if it is one itself (`data-explained`),
 * if the head of its column or the name of its fact is one, or if it is in a part of the page that begins with one
 * (`data-explains`). Times, ids, statements, texts of users, and the texts of buttons need none.
 */
const FIND = String.raw`(() => {
  const EXEMPT = 'time, code, pre, textarea, select, .id, .statement, .cm-editor, [data-explained], [data-explains], ' +
    'button:not([data-explained]), [role=dialog], [role=tooltip], summary, label'
  const NUMBER = /^[×±~]?\s*[\d,]+(\.\d+)?( ?(ns|µs|ms|s|min|h|B|kB|MB|GB|TB|%|[A-Z]{3}|of|open|verified)|[ ,]+[\d,]+)*$/
  const found = []
  const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement
    const text = texts.currentNode.textContent.trim()
    if (!/\d/.test(text) || element.closest(EXEMPT)) continue
    const cell = element.closest('td')
    const fact = element.closest('dd')
    if (cell) {
      const head = cell.closest('table').tHead.rows[0].cells[cell.cellIndex]
      if (head.querySelector('[data-explained]')) continue
      if (!/numeric/.test(cell.className) && !NUMBER.test(cell.textContent.trim())) continue
    }
    if (fact && (fact.previousElementSibling.querySelector('[data-explained]') || !NUMBER.test(fact.textContent.trim()))) continue
    found.push(text)
  }
  return found
})()`

/** The texts of a page with a number that has no explanation. */
export async function unexplainedNumbers(page: Page): Promise<readonly string[]> {
  return (await page.evaluate(FIND)) as readonly string[]
}
