import { type Html, html } from '../../http/html.ts'

const SECTIONS = [
  ['/account', 'Overview', 'overview'],
  ['/account/keys', 'API keys', 'keys'],
  ['/account/teams', 'Teams', 'teams'],
  ['/account/provider-keys', 'Provider keys', 'provider-keys'],
] as const

export type AccountSection = (typeof SECTIONS)[number][2]

/** The frame of an account page; what is in it comes from the JSON routes. */
export function accountPage(section: AccountSection, data: string = ''): Html {
  const [path, title] = SECTIONS.find(([, , name]) => name === section) ?? SECTIONS[0]
  return html`<div class="wrap account">
<nav class="side" aria-label="Account">${SECTIONS.map(
    ([href, name]) => html`<a href="${href}"${href === path ? html` aria-current="page"` : ''}>${name}</a>`,
  )}<button type="button" class="link" data-logout>Log out</button></nav>
<div class="content" data-view="${section}" data-apis="${data}">
<h1>${title}</h1>
<noscript><p class="notice">These pages need JavaScript; everything on them is a JSON route of the <a href="/docs">reference</a>.</p></noscript>
<div data-body aria-live="polite" aria-busy="true"><p class="small">Loading …</p></div>
</div>
</div>`
}

/** Sign-up and log-in. `start` is the page that a newcomer is led to. */
export function credentialsPage(action: 'signup' | 'login', start: string): Html {
  const isNew = action === 'signup'
  return html`<div class="wrap narrow" data-view="credentials">
<h1>${isNew ? 'Sign up' : 'Log in'}</h1>
<form class="card" data-credentials="${action}" data-start="${start}" method="post" action="/${action}">
<div class="field"><label for="email">Email</label><input id="email" name="email" type="email" autocomplete="email" required maxlength="254"></div>
<div class="field"><label for="password">Password</label><input id="password" name="password" type="password" autocomplete="${isNew ? 'new-password' : 'current-password'}" required ${isNew ? html`minlength="8" aria-describedby="password-help"` : ''}>${isNew ? html`<p class="small" id="password-help">8 characters or more.</p>` : ''}</div>
<p class="failure" role="alert" data-failure hidden></p>
<button class="button big" type="submit">${isNew ? 'Create account' : 'Log in'}</button>
<noscript><p class="notice">This form needs JavaScript. Without it: POST /v1/auth/${action} with curl.</p></noscript>
</form>
<p class="small">${isNew ? html`You have an account? <a href="/login">Log in</a>` : html`No account yet? <a href="/signup">Sign up</a>`}</p>
</div>`
}
