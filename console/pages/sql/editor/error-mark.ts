import { StateEffect, StateField, type Text } from '@codemirror/state'
import { Decoration, EditorView, type DecorationSet } from '@codemirror/view'
import { errorRange, type ErrorLocation } from '../../../parts/error-range.ts'

/** Marks the word at a position; undefined removes the mark. */
export const markError = StateEffect.define<ErrorLocation | undefined>()

const mark = Decoration.mark({ class: 'cm-error-place', attributes: { title: 'The error is here' } })

/** The mark of the last error. A change of the text removes it. */
export const errorMark = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, transaction) {
    for (const effect of transaction.effects)
      if (effect.is(markError)) return effect.value ? marked(transaction.state.doc, effect.value) : Decoration.none
    return transaction.docChanged ? Decoration.none : marks
  },
  provide: (field) => EditorView.decorations.from(field),
})

function marked(text: Text, { lineNumber, columnNumber }: ErrorLocation): DecorationSet {
  if (lineNumber > text.lines) return Decoration.none
  const line = text.line(lineNumber)
  const [from, to] = errorRange(line.text, columnNumber)
  return from === to ? Decoration.none : Decoration.set(mark.range(line.from + from, line.from + to))
}
