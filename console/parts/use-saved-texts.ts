import { useState } from 'react'
import { useViewer } from '../api/viewer.ts'

/** A text that a user saved under a name. */
export interface SavedText {
  readonly name: string
  readonly text: string
}

/** The most saved texts of a kind. */
const MOST = 200

/** Texts that the user saved in the storage of this browser. Users of one browser have separate ones. @param kind `filters` */
export function useSavedTexts(kind: string) {
  const viewer = useViewer().data
  const key = `quipu-saved-${kind}:${viewer?.user ?? ''}`
  // The storage is read again after each change.
  const [, setChanges] = useState(0)
  const saved = read(key)
  const write = (texts: readonly SavedText[]) => {
    localStorage.setItem(key, JSON.stringify(texts.slice(0, MOST)))
    setChanges((changes) => changes + 1)
  }
  return {
    saved,
    save: (text: SavedText) => write([text, ...saved.filter(({ name }) => name !== text.name)]),
    remove: (name: string) => write(saved.filter((one) => one.name !== name)),
  }
}

function read(key: string): readonly SavedText[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(key) ?? '[]')
    return Array.isArray(stored) ? stored.filter(isSavedText) : []
  } catch {
    return []
  }
}

function isSavedText(value: unknown): value is SavedText {
  return (
    typeof value === 'object' &&
    value !== null &&
    'name' in value &&
    'text' in value &&
    typeof value.name === 'string' &&
    typeof value.text === 'string'
  )
}
