import type { AskingProgram } from '../../security/authentication/log-in-address.ts'
import { element } from '../../shared/page-elements.ts'
import type { Page } from './page.ts'

/** The page on which a user confirms the log-in of a program. It names the program before anything is done for it. */
export function confirmPage({ address, program }: AskingProgram, path: string): Page {
  return {
    title: 'Log a program in?',
    body: [
      element('p', {}, 'A program asks to act as you at this server:'),
      element(
        'dl',
        {},
        element('dt', {}, 'Program'),
        element('dd', {}, program === '' ? '(no name)' : program),
        element('dt', {}, 'Address'),
        element('dd', {}, address),
      ),
      element(
        'p',
        {},
        element('strong', {}, 'Continue only if you started this program yourself, just now.'),
        ' If somebody else sent you this address, they could do everything that you may do at this server.',
      ),
      element('form', { method: 'post', action: path }, element('button', {}, 'Log it in')),
    ],
  }
}

export interface LogInMethods {
  readonly password: boolean
  readonly provider: boolean
}

/**
 * The page where users log in.
 * @param to the address to go to after the log-in
 * @param refused the user that was typed with a wrong password; absent: nobody tried yet
 */
export function logInPage(methods: LogInMethods, to: string, refused?: string): Page {
  const user = { name: 'user', autocomplete: 'username', required: '' }
  const secret = { name: 'password', type: 'password', autocomplete: 'current-password', required: '' }
  // The cursor is in the field that the user has to fill next.
  const focus = { autofocus: '' }
  const hidden = element('input', { type: 'hidden', name: 'to', value: to })
  const password = element(
    'form',
    { method: 'post', action: '/ui/log-in' },
    hidden,
    element(
      'label',
      {},
      'User ',
      element('input', refused === undefined ? { ...user, ...focus } : { ...user, value: refused }),
    ),
    element('label', {}, 'Password ', element('input', refused === undefined ? secret : { ...secret, ...focus })),
    element('button', {}, 'Log in'),
  )
  const provider = element(
    'form',
    { method: 'post', action: '/ui/log-in/provider' },
    hidden,
    element('button', {}, 'Log in at the identity provider'),
  )
  const neither = methods.password || methods.provider ? [] : ['Only programs can log in here.']
  return {
    title: 'Log in',
    body: [
      ...(refused === undefined ? [] : [element('p', { class: 'problem' }, 'The user or the password is wrong')]),
      ...(methods.password ? [password] : []),
      ...(methods.provider ? [provider] : []),
      ...neither.map((text) => element('p', {}, text)),
    ],
  }
}

/** A page that leads to another page at once: a new navigation from this server, so the browser sends its cookies. */
export function onwardPage(title: string, to: string): Page {
  return { title, onward: to, body: [element('p', {}, element('a', { href: to }, 'Go on'))] }
}

export function loggedInPage(user: string): Page {
  return {
    title: 'Logged in',
    body: [element('p', {}, 'The program is logged in as ', element('strong', {}, user), '. You may close this page.')],
  }
}

/**
 * The page of a log-in that failed.
 * @param again the address to begin again
 */
export function failedPage(text: string, again?: string): Page {
  const link = again === undefined ? [] : [element('p', {}, element('a', { href: again }, 'Log in again'))]
  return { title: 'Not logged in', body: [element('p', { class: 'problem' }, text), ...link] }
}
