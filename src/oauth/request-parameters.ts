import { CALL_SCOPE, resourceOf } from './resources.ts'

/**
 * Parameters of OpenID Connect. Without its scope `openid` they have no meaning and are ignored
 * (RFC 6749, 3.1).
 */
const OPENID_PARAMETERS = ['claims', 'claims_locales', 'id_token_hint', 'max_age', 'nonce']

/**
 * Changes the parameters of an authorization request to what the library accepts.
 *
 * - Every sign-in gets the scope for calls, whatever scope it names. A client may name none (RFC
 *   6749, 3.3).
 * - Every sign-in asks the user, who may choose another account there, so `prompt=select_account`
 *   is always fulfilled and is removed.
 * - `acr_values` is only a wish (OpenID Connect Core, 3.1.2.1), and is removed.
 */
export function adaptSignIn(query: URLSearchParams, baseUrl: string): URLSearchParams {
  const adapted = withResources(query, baseUrl)
  adapted.delete('acr_values')
  rewrite(adapted, 'scope', (scope) => (scope.includes(CALL_SCOPE) ? scope : [...scope, CALL_SCOPE]))
  rewrite(adapted, 'prompt', (prompts) =>
    prompts.includes('none') ? prompts : prompts.filter((prompt) => prompt !== 'select_account'),
  )
  if (!words(adapted.get('scope')).includes('openid')) for (const name of OPENID_PARAMETERS) adapted.delete(name)
  return adapted
}

/**
 * Changes the form of a token request. A refresh gets the scope that the sign-in granted, whatever
 * scope it names: clients repeat the scope of the sign-in, and the answer names the only scope
 * there is.
 */
export function adaptTokenForm(form: URLSearchParams, baseUrl: string): URLSearchParams {
  const adapted = withResources(form, baseUrl)
  if (adapted.get('grant_type') === 'refresh_token') adapted.delete('scope')
  return adapted
}

/**
 * Names each resource once, in one spelling. An address that is not a resource stays, and the
 * library refuses it.
 */
function withResources(given: URLSearchParams, baseUrl: string): URLSearchParams {
  const adapted = new URLSearchParams(given)
  const resources = given.getAll('resource').map((resource) => resourceOf(resource, baseUrl) ?? resource)
  adapted.delete('resource')
  for (const resource of new Set(resources)) adapted.append('resource', resource)
  return adapted
}

/**
 * Changes the space-separated words of a parameter. If the parameter is given twice it stays, and
 * the library refuses it.
 */
function rewrite(parameters: URLSearchParams, name: string, change: (words: string[]) => string[]): void {
  if (parameters.getAll(name).length > 1) return
  const changed = change(words(parameters.get(name)))
  if (changed.length > 0) parameters.set(name, changed.join(' '))
  else parameters.delete(name)
}

function words(text: string | null): string[] {
  return text?.split(' ').filter(Boolean) ?? []
}
