import { type Html, html } from '../../pages/html.ts'

/** The form that asks for the address to which the link to a new password is sent. */
export function forgotPage(): Html {
  return html`<div class="wrap narrow">
<h1>Forgot your password?</h1>
<form class="card" method="post" action="/forgot">
<div class="field"><label for="email">Email</label><input id="email" name="email" type="email" autocomplete="email" required maxlength="254"></div>
<button class="button big" type="submit">Mail me a link</button>
</form>
</div>`
}

/** The text does not depend on whether there is such an account. */
export function linkOnItsWayPage(minutes: number): Html {
  return html`<div class="wrap narrow">
<h1>Check your mail</h1>
<p class="notice">If an account has this address, a link is on its way. It is valid for ${minutes} minutes and works once. An account gets at most three mails an hour.</p>
</div>`
}

/**
 * The form that uses the link.
 * @param failure why the last password was refused
 */
export function resetPage(token: string, failure = ''): Html {
  return html`<div class="wrap narrow">
<h1>Set a new password</h1>
<form class="card" method="post" action="/reset">
<input type="hidden" name="token" value="${token}">
<div class="field"><label for="password">New password</label><input id="password" name="newPassword" type="password" autocomplete="new-password" required minlength="8" aria-describedby="password-help"><p class="small" id="password-help">8 characters or more. All sessions of the account end.</p></div>
${failure === '' ? '' : html`<p class="failure" role="alert">${failure}</p>`}
<button class="button big" type="submit">Set password</button>
</form>
</div>`
}

export function passwordIsSetPage(): Html {
  return html`<div class="wrap narrow">
<h1>Your password is set</h1>
<p class="notice">All sessions have ended: <a href="/login">log in</a> with the new password.</p>
<p>Keys and connected applications stay valid. If somebody else may have used the account, revoke the keys and applications that you do not know on <a href="/account/keys">API keys</a> and <a href="/account/connections">Connected apps</a>.</p>
</div>`
}
