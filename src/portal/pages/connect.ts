import { type Html, html } from '../../pages/html.ts'

/**
 * The frame of the consent page. Its script fills in who asks for what, from the sign-in's route.
 *
 * @param takesSignups whether visitors without an account can make an account there
 * @param provider name of the OIDC provider, if accounts sign in there
 */
export function connectPage(takesSignups: boolean, provider: string | undefined): Html {
  const atProvider = provider === undefined ? '' : html` data-provider-name="${provider}"`
  return html`<div class="wrap narrow" data-view="connect"${takesSignups ? html` data-takes-signups` : ''}${atProvider}>
<h1>Connect an application</h1>
<noscript><p class="notice">This page needs JavaScript.</p></noscript>
<div data-body aria-live="polite" aria-busy="true"><p class="small">Loading …</p></div>
</div>`
}
