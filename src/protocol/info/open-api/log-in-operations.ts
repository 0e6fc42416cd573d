import { type Json, json, nothing, problemOf, path, query } from './document-parts.ts'

const page = (description: string): Json => ({
  description,
  content: { 'text/html': { schema: { type: 'string' } } },
})

const logIn = path('logIn', 'Identifier from WWW-Authenticate of a 401; valid for ten minutes')

const unknownLogIn = problemOf('The address is not from a 401, or this server has no such log-in')

const logInFailures = {
  403: page(
    'The request did not use HTTPS or did not come from a page of this server, or the identity provider refused it',
  ),
  404: page('This log-in has ended or never existed'),
  503: page('The identity provider or Postgres does not answer'),
} as const

/** The operations on log-ins at an identity provider. */
export const logInOperations = {
  '/oauth2/token/initiate/{logIn}': {
    get: {
      summary: 'Show the user which program requests a log-in, and from where',
      parameters: [logIn],
      responses: { 200: page('A form that sends the POST'), ...logInFailures },
    },
    post: {
      summary: 'The user confirms; the browser continues at the identity provider',
      parameters: [logIn],
      responses: {
        200: page('Redirects to the identity provider'),
        ...logInFailures,
        409: page('The log-in has ended'),
        429: page('Too many log-ins are in progress'),
      },
    },
  },
  '/oauth2/revoke': {
    post: {
      summary: 'A program logs out (RFC 7009): its token and later tokens of the same log-in become invalid',
      requestBody: {
        required: true,
        content: {
          'application/x-www-form-urlencoded': {
            schema: { type: 'object', properties: { token: { type: 'string' } }, required: ['token'] },
          },
        },
      },
      responses: {
        200: nothing('The token is invalid now, or already was'),
        400: problemOf('The body is not UTF-8'),
        403: problemOf('The request did not use HTTPS'),
        413: problemOf('The body is too long'),
        415: problemOf('The body is not a form'),
        503: problemOf('Postgres does not answer'),
      },
    },
  },
  '/oauth2/callback': {
    get: {
      summary: 'Address to which the identity provider sends the browser back',
      parameters: [
        query('state', 'Identifies the log-in'),
        query('code', 'Code of the provider'),
        query('iss', 'Issuer: names the provider'),
        query('error', 'Reason why there is no code'),
        query('error_description', 'The reason in words'),
      ],
      responses: {
        200: page('The user is logged in'),
        400: page('The log-in belongs to another browser, has ended, or was already used'),
        ...logInFailures,
        409: page('The program no longer waits for the token'),
      },
    },
  },
  '/oauth2/token/{logIn}': {
    get: {
      summary:
        'The token for a program whose user logs in. The server waits up to ten seconds, and gives the token once',
      parameters: [logIn],
      responses: {
        200: json('Exactly one of the three fields', {
          type: 'object',
          properties: {
            token: { type: 'string', description: 'The client sends it as `Authorization: Bearer`' },
            error: { type: 'string' },
            nextUri: { type: 'string', description: 'There is no token yet: the client requests this address next' },
          },
        }),
        403: problemOf('The request did not use HTTPS'),
        404: unknownLogIn,
        503: problemOf('Postgres does not answer, or too many programs wait'),
      },
    },
    delete: {
      summary: 'The program has its token, or no longer needs it',
      parameters: [logIn],
      responses: {
        204: nothing('The log-in is deleted'),
        404: unknownLogIn,
        503: problemOf('Postgres does not answer'),
      },
    },
  },
} as const
