import { EditorView } from '@codemirror/view'

/**
 * Replaces a selection by the text that is typed over it. Chrome would keep the color of the replaced text in a style
 * attribute, which the content security policy refuses.
 */
export const typedOverSelection = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { data } = event
    if (event.inputType !== 'insertText' || data === null || event.isComposing) return false
    const { from, to } = selectionOf(view)
    if (from === to) return false
    event.preventDefault()
    const typed = () =>
      view.state.update({
        changes: { from, to, insert: data },
        selection: { anchor: from + data.length },
        scrollIntoView: true,
        userEvent: 'input.type',
      })
    // Brackets and quotes are put around the selection.
    const isHandled = view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, data, typed))
    if (!isHandled) view.dispatch(typed())
    return true
  },
})

/** The selection in the browser, which the editor does not know yet. In Chrome the shadow root has it. */
function selectionOf(view: EditorView): { readonly from: number; readonly to: number } {
  const root = view.root as { getSelection?(): Selection | null }
  const selection = root.getSelection?.()
  if (!selection?.anchorNode || !selection.focusNode || !view.contentDOM.contains(selection.anchorNode))
    return view.state.selection.main
  const anchor = view.posAtDOM(selection.anchorNode, selection.anchorOffset)
  const focus = view.posAtDOM(selection.focusNode, selection.focusOffset)
  return { from: Math.min(anchor, focus), to: Math.max(anchor, focus) }
}
