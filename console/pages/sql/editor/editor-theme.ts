import { HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import type { Extension } from '@codemirror/state'
import { EditorView } from '@codemirror/view'
import { tags } from '@lezer/highlight'

/** Colors of the console, which change with light and dark. */
const highlighting = HighlightStyle.define([
  { tag: tags.keyword, color: 'var(--mantine-color-anchor)', fontWeight: '600' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--mantine-color-green-outline)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--mantine-color-orange-outline)' },
  { tag: tags.comment, color: 'var(--mantine-color-dimmed)', fontStyle: 'italic' },
  { tag: tags.typeName, color: 'var(--mantine-color-blue-outline)' },
])

const shape = EditorView.theme({
  '&': {
    fontSize: '14px',
    color: 'var(--mantine-color-text)',
    backgroundColor: 'var(--mantine-color-body)',
    border: '1px solid var(--mantine-color-default-border)',
  },
  '&.cm-focused': { outline: '2px solid var(--mantine-color-anchor)' },
  '.cm-scroller': { minHeight: '10rem', maxHeight: '50vh', overflow: 'auto' },
  '.cm-content': { caretColor: 'var(--mantine-color-text)' },
  '.cm-gutters': {
    color: 'var(--mantine-color-dimmed)',
    backgroundColor: 'transparent',
    border: 'none',
  },
  '.cm-tooltip': {
    color: 'var(--mantine-color-text)',
    backgroundColor: 'var(--mantine-color-body)',
    border: '1px solid var(--mantine-color-default-border)',
  },
  '.cm-tooltip-autocomplete ul li[aria-selected]': {
    color: 'var(--mantine-color-white)',
    backgroundColor: 'var(--mantine-color-blue-9)',
  },
  '.cm-error-place': { textDecoration: 'underline wavy var(--mantine-color-red-filled)' },
})

export const editorTheme: Extension = [shape, syntaxHighlighting(highlighting)]
