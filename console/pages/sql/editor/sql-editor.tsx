import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  closeCompletion,
  completionKeymap,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { EditorState } from '@codemirror/state'
import { EditorView, keymap, lineNumbers } from '@codemirror/view'
import { useEffect, useRef } from 'react'
import type { Metadata } from '../../../api/statement/metadata.ts'
import type { StatementSession } from '../../../api/statement/session.ts'
import type { ErrorLocation } from '../../../parts/error-range.ts'
import { completeNames } from './completion.ts'
import { editorTheme } from './editor-theme.ts'
import { errorMark, markError } from './error-mark.ts'
import { trinoDialect } from './trino-dialect.ts'
import { typedOverSelection } from './typed-over-selection.ts'

export interface SqlEditorProps {
  readonly text: string
  /** A place of the text to mark. */
  readonly error: ErrorLocation | undefined
  readonly metadata: Metadata
  readonly session: StatementSession
  /** Called with each change. @param selected the selected part; empty: none */
  readonly onChange: (text: string, selected: string) => void
  /** Ctrl or Cmd with Enter. */
  readonly onRun: () => void
}

/**
 * The editor of a statement. It lives in a shadow root: there CodeMirror adds its styles as adopted style sheets, which
 * the content security policy allows; it refuses style elements.
 */
export default function SqlEditor(props: SqlEditorProps) {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(undefined)
  const latest = useRef(props)
  useEffect(() => {
    latest.current = props
  })
  useEffect(() => {
    if (!host.current) return
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: 'open' })
    const made = new EditorView({ parent: root, root, state: stateOf(() => latest.current) })
    view.current = made
    return () => made.destroy()
  }, [])
  useEffect(() => {
    const now = view.current?.state.doc
    if (now && now.toString() !== props.text)
      view.current?.dispatch({ changes: { from: 0, to: now.length, insert: props.text } })
  }, [props.text])
  useEffect(() => view.current?.dispatch({ effects: markError.of(props.error) }), [props.error])
  return <div ref={host} data-testid="sql-editor" />
}

function stateOf(props: () => SqlEditorProps): EditorState {
  const { text, metadata } = props()
  const run = (view: EditorView) => {
    closeCompletion(view)
    props().onRun()
    return true
  }
  return EditorState.create({
    doc: text,
    extensions: [
      lineNumbers(),
      history(),
      closeBrackets(),
      EditorView.lineWrapping,
      trinoDialect.extension,
      autocompletion({ override: [completeNames(metadata, () => props().session)] }),
      keymap.of([
        { key: 'Mod-Enter', run, preventDefault: true },
        ...closeBracketsKeymap,
        ...completionKeymap,
        ...historyKeymap,
        ...defaultKeymap,
      ]),
      editorTheme,
      errorMark,
      typedOverSelection,
      EditorView.contentAttributes.of({ 'aria-label': 'SQL statement' }),
      EditorView.updateListener.of(({ state, docChanged, selectionSet }) => {
        if (!docChanged && !selectionSet) return
        const { from, to } = state.selection.main
        props().onChange(state.doc.toString(), state.sliceDoc(from, to))
      }),
    ],
  })
}
