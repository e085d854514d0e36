import { type Html, html } from '../../pages/html.ts'

/**
 * The frame of the consent page. Its script fills in who asks for what, from the sign-in's route.
 *
 * @param isSignupOpen whether visitors without an account can make an account there
 * @param provider name of the OIDC provider, if accounts sign in there
 */
export function connectPage(isSignupOpen: boolean, provider: string | undefined): Html {
  const atProvider = provider === undefined ? '' : html` data-provider-name="${provider}"`
  return html`<div class="wrap narrow" data-view="connect"${isSignupOpen ? html` data-signup-open` : ''}${atProvider}>
<h1>Connect an application</h1>
<noscript><p class="notice">This page needs JavaScript.</p></noscript>
<div data-body aria-live="polite" aria-busy="true"><p class="small">Loading …</p></div>
</div>`
}
