import type { errors, KoaContextWithOIDC } from 'oidc-provider'
import { oneLine } from '../accounts/foreign-text.ts'
import { DependencyError, isDependencyAway } from '../errors.ts'
import type { AuthorizationDeps } from './authorization-server.ts'

/**
 * The library's context of an answer. If the library does not know the request's route, there is no
 * `oidc`.
 */
type Answering = Pick<KoaContextWithOIDC, 'status' | 'set' | 'response' | 'body' | 'state'> & {
  oidc?: KoaContextWithOIDC['oidc']
}

/**
 * Allows the form of `response_mode=form_post`. The browser sends this form to the application, and
 * the page's policy, which allows forms to this origin only, would stop it. The library has already
 * checked the address.
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
 * Messages of the library that mean "the document cannot be read now". A document that was read and
 * is wrong has another message.
 */
const UNREAD_DOCUMENT = /^client_id metadata document fetch (failed|not allowed)$/

/** Message of the library if this client address may not fetch the document now. */
const REFUSED_DOCUMENT = 'client_id metadata document fetch not allowed'

const UNREAD_WORDS = 'The document that describes the application cannot be read now. Try again later'

/** Seconds after which the document of an application may be readable. */
const DOCUMENT_RETRY_SECONDS = 30

function tryAgainLater(context: Answering): void {
  context.status = 503
  context.set('retry-after', String(DOCUMENT_RETRY_SECONDS))
}

/**
 * If an application's document cannot be read now, the application is not unknown. After
 * `invalid_client` programs would throw away their tokens.
 */
export function tellOfDocument(context: Answering): void {
  const { error, error_description: words } = Object(context.body)
  if (error !== 'invalid_client' || !UNREAD_DOCUMENT.test(words)) return
  tryAgainLater(context)
  context.body = {
    error: 'temporarily_unavailable',
    error_description: `${UNREAD_WORDS}.`,
  }
}

/**
 * Whether the library is about to send the error of a sign-in to the application's address although
 * no user has decided. Anybody can register any address, so a link to this gateway could lead to
 * any site that a stranger chooses (RFC 9700, 4.11.2).
 */
export function isRefusedUnasked({ state, oidc }: Answering): boolean {
  if (state?.refusal === undefined || state.isOwnPage) return false
  return oidc?.entities.Interaction?.result === undefined
}

/**
 * Answers a failure that the client did not cause. Without Postgres or Redis nobody can sign in;
 * applications that have signed in keep working for a minute.
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
 * Answers a failure that the library leaves to its framework, for example if the store does not
 * answer while the library loads the session. The framework would write into the error object,
 * which our errors forbid, and the browser would get no answer.
 */
export function answerUnhandled(context: KoaContextWithOIDC, deps: AuthorizationDeps, thrown: unknown): void {
  context.status = 500
  // The browser keeps the cookies that it needs to repeat the step.
  context.remove('set-cookie')
  context.remove('location')
  if (context.path.startsWith('/oauth/authorize')) {
    renderError(context, deps, new Error('The gateway cannot serve the sign-in now; try again in a few seconds'))
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
  // Applications keep the id with which they registered, and do not see the text of this page.
  // Adding the gateway again does not help an application whose document cannot be read.
  const isUnread = UNREAD_DOCUMENT.test(words)
  const isUnknown = !isUnread && context.oidc?.params?.client_id !== undefined && context.oidc.client === undefined
  const shown = isUnread ? UNREAD_WORDS : oneLine(words, ERROR_CHARACTERS_MAX)
  const hint = isUnknown ? ' If this happens again, remove this gateway from the application and add it again.' : ''
  context.body = errorPage('The application cannot sign in', `${shown}.${hint}`)
}

/**
 * Longest text of the library on a page, characters. The text repeats parameters of the request.
 */
const ERROR_CHARACTERS_MAX = 300
