/** The short name of an event: `quipu.query.planned.v2` is `query planned`. */
export function eventName({ type }: { readonly type: string }): string {
  return type
    .replace(/^quipu\./, '')
    .replace(/\.v\d+$/, '')
    .replaceAll('.', ' ')
}
