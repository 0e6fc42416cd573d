import { useState } from 'react'

const KEY = 'quipu-sql-draft'

/** The text of the editor; it is kept while the browser's tab is open. */
export function useDraft(): readonly [string, (text: string) => void] {
  const [text, setText] = useState(() => sessionStorage.getItem(KEY) ?? '')
  return [
    text,
    (changed) => {
      setText(changed)
      try {
        sessionStorage.setItem(KEY, changed)
      } catch {
        // The storage is full: the text stays in the page.
      }
    },
  ]
}
