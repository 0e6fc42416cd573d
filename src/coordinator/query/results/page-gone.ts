import { QuipuError } from '../../../shared/quipu-error.ts'

/** A listed page is missing, or differs from what was listed. */
export class PageGone extends QuipuError {
  readonly retry = 'anew'
}
