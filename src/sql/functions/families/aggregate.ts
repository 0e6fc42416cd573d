import type { FunctionDefinition } from '../function-definition.ts'
export const aggregateFunctions: readonly FunctionDefinition[] = []
