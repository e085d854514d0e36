import { contactHref } from '../../config/upstream-variables.ts'
import type { SignupPolicy } from '../../config.ts'
import { type Html, html } from '../../pages/html.ts'
import type { Visit } from '../catalog-view.ts'
import { planTable } from './plan-table.ts'

const SECTIONS = [
  ['/account', 'Overview', 'overview'],
  ['/account/keys', 'API keys', 'keys'],
  ['/account/calls', 'Calls', 'calls'],
  ['/account/teams', 'Teams', 'teams'],
  ['/account/provider-keys', 'Provider keys', 'provider-keys'],
  ['/account/connections', 'Connected apps', 'connections'],
  ['/account/settings', 'Settings', 'settings'],
] as const

export type AccountSection = (typeof SECTIONS)[number][2]

/** What an account page needs besides the data of its section. */
export interface AccountExtras {
  /** For a page below the page of a section: the name of its script's part, and its own title. */
  part?: { view: string; title: string }
  /** JSON of the APIs that accept a caller's own key. */
  apis?: string
  /** The page of the API that newcomers try first. */
  start?: string
  /**
   * Whether addresses are proven by mail. Only then does it matter that an address is not proven.
   */
  provesAddresses?: boolean
  /** Content below the section that is the same for every account. */
  below?: Html
}

/** The frame of an account page. Its scripts fill it with data of the JSON routes. */
export function accountPage(
  section: AccountSection,
  { apis = '', start = '/', provesAddresses = false, below, part }: AccountExtras = {},
): Html {
  const [path, name] = SECTIONS.find(([, , name]) => name === section) ?? SECTIONS[0]
  return html`<div class="wrap account">
<nav class="side" aria-label="Account"><details class="menu"><summary>Account: <strong>${name}</strong></summary><div class="links">${SECTIONS.map(
    ([href, text]) => html`<a href="${href}"${href === path ? html` aria-current="page"` : ''}>${text}</a>`,
  )}<button type="button" class="link" data-logout>Log out</button></div></details></nav>
<div class="content" data-view="${part?.view ?? section}" data-apis="${apis}" data-start="${start}"${provesAddresses ? html` data-proves-addresses` : ''}>
<h1>${part?.title ?? name}</h1>
<noscript><p class="notice">These pages need JavaScript; everything on them is a JSON route of the <a href="/docs/reference">reference</a>.</p></noscript>
<div data-body aria-live="polite" aria-busy="true"><p class="small">Loading …</p></div>
${below ?? ''}
</div>
</div>`
}

/**
 * The plans, and whom to ask for another plan.
 *
 * @param contact undefined if the operator has set none
 */
export function plansCard(plans: Visit['plans'], contact: string | undefined): Html {
  return html`<section class="card" aria-labelledby="plans-title"><h2 id="plans-title">Plans</h2>
${planTable(plans, 'Calls over all APIs. Test calls have the same limits per minute and no monthly limit.')}
<p>${contact === undefined ? 'To change plan, contact the operator of this gateway.' : html`To change plan, contact ${contactLink(contact)}`}</p></section>`
}

function contactLink(contact: string): Html {
  const href = contactHref(contact)
  return href === undefined ? html`${contact}` : html`<a href="${href}" rel="noreferrer noopener">${contact}</a>`
}

/** What a new account may do under the operator's settings; empty if nothing is restricted. */
const AFTER_SIGNUP: Record<SignupPolicy, string> = {
  open: '',
  verified:
    'You get a mail with a link that verifies your address. Test calls work at once, live calls after you open the link.',
  approval: 'An operator approves each account. Test calls work at once, live calls after the approval.',
  closed: '',
}

/** Shown instead of the form, which could not succeed. */
export function signupClosedPage(contact: string | undefined, provider: string | undefined): Html {
  return html`<div class="wrap narrow">
<h1>Sign up</h1>
${providerButton(provider)}
<p class="notice">Sign-up is closed. ${contact === undefined ? 'Ask the operator of this gateway to open it.' : html`Ask the operator to open it: ${contactLink(contact)}`}</p>
<p class="small">You have an account? <a href="/login">Log in</a></p>
</div>`
}

/**
 * A link to the OIDC provider, if accounts sign in there.
 * @param provider the provider's name
 */
function providerButton(provider: string | undefined): Html | '' {
  if (provider === undefined) return ''
  return html`<p><a class="button big" href="/login/oidc" data-provider>Sign in with ${provider}</a></p>`
}

/**
 * Sign-up and log-in.
 * @param options.provider name of the OIDC provider, if accounts sign in there
 * @param options.start the page to which a newcomer is led
 * @param options.mails whether the gateway sends mail
 */
export function credentialsPage(
  action: 'signup' | 'login',
  {
    start,
    signup,
    mails,
    provider,
  }: { start: string; signup: SignupPolicy; mails: boolean; provider: string | undefined },
): Html {
  const isNew = action === 'signup'
  const after = isNew ? AFTER_SIGNUP[signup] : ''
  return html`<div class="wrap narrow" data-view="credentials">
<h1>${isNew ? 'Sign up' : 'Log in'}</h1>
${providerButton(provider)}
${after === '' ? '' : html`<p>${after}</p>`}
<form class="card" data-credentials="${action}" data-start="${start}" method="post" action="/${action}">
<div class="field"><label for="email">Email</label><input id="email" name="email" type="email" autocomplete="email" required maxlength="254"></div>
<div class="field"><label for="password">Password</label><input id="password" name="password" type="password" autocomplete="${isNew ? 'new-password' : 'current-password'}" required ${isNew ? html`minlength="8" aria-describedby="password-help"` : ''}>${isNew ? html`<p class="small" id="password-help">8 characters or more.</p>` : ''}<label class="option show-password"><input type="checkbox" data-show-password> Show what I type</label><p class="small warn" role="status" data-weak hidden></p></div>
<p class="failure" role="alert" data-failure hidden></p>
<button class="button big" type="submit">${isNew ? 'Create account' : 'Log in'}</button>
<noscript><p class="notice">This form needs JavaScript. Without it: POST /v1/auth/${action} with curl.</p></noscript>
</form>
${isNew ? '' : html`<p class="small">${mails ? html`<a href="/forgot">Forgot your password?</a>` : 'Forgot your password? The operator of this gateway can give you a link that sets a new password.'}</p>`}
<p class="small">${isNew ? html`You have an account? <a href="/login">Log in</a>` : html`No account yet? <a href="/signup">${signup === 'closed' ? 'Sign-up is closed' : 'Sign up'}</a>`}</p>
</div>`
}
