import { type Html, html } from '../../pages/html.ts'

/**
 * A page that leads a person on after the provider's sign-in. A redirect would count as a
 * navigation from the provider's site, for which browsers do not send the session's cookie.
 */
export function refreshTo(next: string): Html {
  return html`<meta http-equiv="refresh" content="0;url=${next}">`
}

/** Its script tells the other tabs of the browser that the session is another. */
export function signedInPage(next: string): Html {
  return html`<div class="wrap narrow" data-view="signed-in">
<h1>You are signed in</h1>
<p><a href="${next}">Continue</a></p>
</div>`
}

export interface ClaimWords {
  email: string
  /** Name of the provider. */
  provider: string
  /** The sealed claim that the forms send back. */
  sealed: string
  hasPassword: boolean
  mayStartAnew: boolean
  /** Why the last password was refused. */
  failure?: string
}

/**
 * The page for a person whose address belongs to an account that is not yet proven to be theirs.
 */
export function claimPage({ email, provider, sealed, hasPassword, mayStartAnew, failure = '' }: ClaimWords): Html {
  const why = mayStartAnew
    ? html`An account with the address <strong>${email}</strong> exists, and nobody has verified this address. So the account may be yours, or somebody else may have created it.`
    : html`The account with the address <strong>${email}</strong> belongs to somebody else at ${provider}.`
  return html`<div class="wrap narrow">
<h1>Is this account yours?</h1>
<p>${why}</p>
${failure === '' ? '' : html`<p class="failure" role="alert">${failure}</p>`}
${hasPassword ? passwordForm(sealed, provider) : ''}
${mayStartAnew ? startAnewForm(sealed) : ''}
${hasPassword || mayStartAnew ? '' : html`<p class="notice">It has no password. Ask the operator of this gateway for a link that sets one, and sign in again.</p>`}
</div>`
}

function passwordForm(sealed: string, provider: string): Html {
  return html`<form class="card" method="post" action="/login/claim">
<h2>You know its password</h2>
<p>Enter it once. From then on your sign-in by ${provider} leads to this account.</p>
<input type="hidden" name="claim" value="${sealed}">
<div class="field"><label for="password">Password of the account</label><input id="password" name="password" type="password" autocomplete="current-password" required></div>
<button class="button big" type="submit">Link the account</button>
</form>`
}

function startAnewForm(sealed: string): Html {
  return html`<form class="card" method="post" action="/login/claim">
<h2>You do not know its password</h2>
<p>Start anew: the gateway deletes that account with its keys, connected apps and teams, and creates an account for you with the same address and plan.</p>
<input type="hidden" name="claim" value="${sealed}">
<button class="button danger" type="submit">Start anew</button>
</form>`
}
