import type { errors, KoaContextWithOIDC } from 'oidc-provider'
import { oneLine } from '../accounts/foreign-text.ts'
import { DependencyError, isDependencyAway } from '../errors.ts'
import type { AuthorizationDeps } from './authorization-server.ts'

/** A request as the library leaves it; a request that it does not know has no sign-in. */
type Answering = Pick<KoaContextWithOIDC, 'status' | 'set' | 'response' | 'body' | 'state'> & {
  oidc?: KoaContextWithOIDC['oidc']
}

/**
 * With `response_mode=form_post` the answer is a form that the browser sends to the application:
 * the page's policy, under which forms go to this origin alone, would stop it. The library has
 * checked the address by then.
 */
export function allowFormPost(context: Answering): void {
  const { response_mode: mode, redirect_uri: given } = context.oidc?.params ?? {}
  if (mode !== 'form_post' || ![200, 400, 500].includes(context.status) || context.state?.isOwnPage) return
  const { origin, protocol } = new URL(String(given))
  const policy = context.response.get('content-security-policy')
  const target = origin === 'null' ? protocol : origin
  context.set('content-security-policy', policy.replace(/form-action [^;]*/, `form-action ${target}`))
}

/**
 * Failures of the library by which a document could not be read now; if a document was read and is
 * wrong, the failure is another.
 */
const UNREAD_DOCUMENT = /^client_id metadata document fetch (failed|not allowed)$/

/** The failure of a document that may not be fetched for this client address now. */
const REFUSED_DOCUMENT = 'client_id metadata document fetch not allowed'

/** Seconds after which the document of an application may be there. */
const DOCUMENT_RETRY_SECONDS = 30

function tryAgainLater(context: Answering): void {
  context.status = 503
  context.set('retry-after', String(DOCUMENT_RETRY_SECONDS))
}

/**
 * If an application's document cannot be read now, the application is not unknown. If the answer
 * were `invalid_client`, programs would throw away their tokens.
 */
export function tellOfDocument(context: Answering): void {
  const { error, error_description: words } = Object(context.body)
  if (error !== 'invalid_client' || !UNREAD_DOCUMENT.test(words)) return
  tryAgainLater(context)
  context.body = {
    error: 'temporarily_unavailable',
    error_description: 'The document that describes the application cannot be read now. Try again later.',
  }
}

/**
 * Whether the library sends a failure of a sign-in on which no user has decided to the
 * application's address. Anybody registers any address, so that this gateway's own address would
 * lead wherever a stranger likes (RFC 9700, 4.11.2).
 */
export function isRefusedUnasked({ state, oidc }: Answering): boolean {
  if (state?.refusal === undefined || state.isOwnPage) return false
  return oidc?.entities.Interaction?.result === undefined
}

/**
 * A failure that is not the client's. Without Postgres or Redis sign-ins wait; applications that
 * are signed in go on for a minute.
 */
export function answerFailure(context: KoaContextWithOIDC, { log }: AuthorizationDeps, error: Error): void {
  if (!isDependencyAway(error) && !(error instanceof DependencyError)) {
    log.error({ err: error }, 'failed to serve a sign-in')
    return
  }
  log.warn({ err: error }, 'failed to serve a sign-in without a store')
  context.status = 503
  context.set('retry-after', '2')
  if (!context.response.is('html')) {
    context.body = { error: 'temporarily_unavailable', error_description: 'Try again in a few seconds.' }
  }
}

/**
 * Answers a failure that the library leaves to its framework, such as a store that does not answer
 * while the library loads the session. The framework writes into the error, which ours does not
 * allow, and the browser would get no answer.
 */
export function answerUnhandled(context: KoaContextWithOIDC, deps: AuthorizationDeps, thrown: unknown): void {
  context.status = 500
  // The browser keeps what it needs to take the step again.
  context.remove('set-cookie')
  context.remove('location')
  if (context.path.startsWith('/oauth/authorize')) {
    renderError(context, deps, new Error('The gateway cannot serve the sign-in now, try again in a few seconds'))
  } else context.body = { error: 'server_error', error_description: 'The gateway failed.' }
  answerFailure(context, deps, thrown instanceof Error ? thrown : new Error(String(thrown)))
}

/** Shows on a page of our own why a sign-in cannot go on. */
export function renderError(context: KoaContextWithOIDC, { errorPage }: AuthorizationDeps, error: Error): void {
  const { error_description: words = error.message } = error as errors.OIDCProviderError
  context.type = 'html'
  context.state.isOwnPage = true
  if (context.status < 400) context.status = 400
  if (words === REFUSED_DOCUMENT) tryAgainLater(context)
  // Applications keep the id with which they registered, and learn nothing of what this page says.
  const isUnknown = context.oidc?.params?.client_id !== undefined && context.oidc.client === undefined
  const hint = isUnknown ? ' If it stays so, take this gateway out of the application and add it again.' : ''
  context.body = errorPage('The application cannot sign in', `${oneLine(words, ERROR_CHARACTERS_MAX)}.${hint}`)
}

/** Longest text of the library on a page, characters: it names parameters of the request. */
const ERROR_CHARACTERS_MAX = 300
