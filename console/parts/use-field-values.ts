import { useEffect, useRef, type RefObject } from 'react'

/**
 * Puts values into the fields of a form when they change. The form keeps its elements, and so the focus.
 * @param valueOf the value of a field, by its name
 * @param version a text that changes when a value changes
 */
export function useFieldValues(valueOf: (name: string) => string, version: string): RefObject<HTMLFormElement | null> {
  const form = useRef<HTMLFormElement>(null)
  const values = useRef(valueOf)
  useEffect(() => {
    values.current = valueOf
  })
  useEffect(() => {
    for (const field of form.current?.elements ?? [])
      if ((field instanceof HTMLInputElement || field instanceof HTMLSelectElement) && field.name !== '')
        field.value = values.current(field.name)
  }, [version])
  return form
}
