import { CALL_SCOPE, resourceOf } from './resources.ts'

/**
 * Of OpenID Connect, for requests of its scope. Without that scope they mean nothing, and are
 * ignored (RFC 6749, 3.1).
 */
const OPENID_PARAMETERS = ['claims', 'claims_locales', 'id_token_hint', 'max_age', 'nonce']

/**
 * Adapts what a sign-in begins with to what the library takes.
 *
 * - Every sign-in is for calls, whatever scope it names. A client may name none (RFC 6749, 3.3).
 * - Every sign-in asks its user, who may choose another account there: `select_account` is met.
 * - `acr_values` is voluntary (OpenID Connect Core, 3.1.2.1).
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
 * Adapts the form of a token request. A refresh gets what the sign-in granted, whatever scope it
 * names: clients repeat the scope of the sign-in, and there is one scope, which the answer says.
 */
export function adaptTokenForm(form: URLSearchParams, baseUrl: string): URLSearchParams {
  const adapted = withResources(form, baseUrl)
  if (adapted.get('grant_type') === 'refresh_token') adapted.delete('scope')
  return adapted
}

/**
 * Names each resource once, in one spelling; an address that is no resource of ours stays, and is
 * refused.
 */
function withResources(given: URLSearchParams, baseUrl: string): URLSearchParams {
  const adapted = new URLSearchParams(given)
  const resources = given.getAll('resource').map((resource) => resourceOf(resource, baseUrl) ?? resource)
  adapted.delete('resource')
  for (const resource of new Set(resources)) adapted.append('resource', resource)
  return adapted
}

/** Changes the words of a parameter; a parameter that is given twice stays, and is refused. */
function rewrite(parameters: URLSearchParams, name: string, change: (words: string[]) => string[]): void {
  if (parameters.getAll(name).length > 1) return
  const changed = change(words(parameters.get(name)))
  if (changed.length > 0) parameters.set(name, changed.join(' '))
  else parameters.delete(name)
}

function words(text: string | null): string[] {
  return text?.split(' ').filter(Boolean) ?? []
}
