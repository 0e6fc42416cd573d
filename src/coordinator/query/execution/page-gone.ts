import { QuipuError } from '../../../shared/quipu-error.ts'

/** A page that was listed is not there, or is another. */
export class PageGone extends QuipuError {
  readonly retry = 'anew'
}
