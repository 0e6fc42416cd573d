import { lazy, Suspense } from 'react'
import type { SqlEditorProps } from './sql-editor.tsx'

const SqlEditor = lazy(() => import('./sql-editor.tsx'))

/** The editor of a statement; its code is loaded when it is first shown. */
export function LazyEditor(props: SqlEditorProps) {
  return (
    <Suspense fallback={<p>The editor is being loaded.</p>}>
      <SqlEditor {...props} />
    </Suspense>
  )
}
