import { EditorView } from '@codemirror/view'

/**
 * Replaces a selection by the text that is typed over it. Chrome would keep the color of the replaced text in a style
 * attribute, which the content security policy refuses.
 */
export const typedOverSelection = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { from, to, empty } = view.state.selection.main
    const { data } = event
    if (event.inputType !== 'insertText' || data === null || event.isComposing || empty) return false
    event.preventDefault()
    const typed = () => view.state.update(view.state.replaceSelection(data), { userEvent: 'input.type' })
    // Brackets and quotes are put around the selection.
    const isHandled = view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, data, typed))
    if (!isHandled) view.dispatch(typed())
    return true
  },
})
