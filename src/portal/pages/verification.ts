import { type Html, html } from '../../pages/html.ts'

/**
 * Asks a person to confirm the address. A click is needed, because programs open each link of a
 * mail.
 */
export function verifyPage(token: string): Html {
  return html`<div class="wrap narrow">
<h1>Verify your email address</h1>
<form class="card" method="post" action="/verify">
<p>Confirm that the account of this mail is yours. If you have not signed up, close this page.</p>
<input type="hidden" name="token" value="${token}">
<button class="button big" type="submit">This account is mine</button>
</form>
</div>`
}

export function addressIsVerifiedPage(): Html {
  return html`<div class="wrap narrow">
<h1>Your email address is verified</h1>
<p class="notice">Next: <a href="/account">your account</a>, or <a href="/">an API to call</a>.</p>
</div>`
}
