/** The functions that the front end adds to an engine's process (`EngineModule` of `execution/engine/messages.ts`). */
export { registerScripts as register } from './scripts/register.ts'
export { engineVocabulary as vocabulary } from './engine-vocabulary.ts'
