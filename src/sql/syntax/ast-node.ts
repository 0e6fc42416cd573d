import type { Span } from './span.ts'

/** The base of all nodes: kind and position. Nodes are plain data: they survive JSON and structuredClone. */
export interface Node<Kind extends string> {
  readonly kind: Kind
  readonly span: Span
}

/** A name as written, without its quotes. Names are compared case-insensitively, quoted or not. */
export interface Identifier extends Node<'Identifier'> {
  readonly value: string
  readonly quoted: boolean
}

export interface QualifiedName extends Node<'QualifiedName'> {
  readonly parts: readonly Identifier[]
}
