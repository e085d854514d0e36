import type { Static } from 'typebox'
import type { AccountUsage } from '../db/account-usage.ts'
import { PLAN_OF_TIER, TIERS } from '../limits/plans.ts'
import type { AccountReport } from '../operator/account-report.ts'
import type { UserAnswer } from '../operator/change-user.ts'
import type { Assets } from '../pages/assets.ts'
import { type Html, html } from '../pages/html.ts'
import { accountLink, callTable, fact, tableOf, textPage, time } from './page-parts.ts'

type User = Static<typeof UserAnswer>

/** The filters of the list of accounts, from its address. */
export interface AccountList {
  users: User[]
  text: string
  isUnapproved: boolean
  /** Address of the next page; undefined on the last page. */
  next: string | undefined
}

/** Accounts by a part of their address or by id, newest first. */
export function accountsPage({ users, text, isUnapproved, next }: AccountList, assets: Assets): string {
  const rows = users.map((user) => [
    accountLink(user),
    `${user.plan} (${user.tier})`,
    stateOf(user),
    user.liveCallsNeed === null ? 'are answered' : `need ${user.liveCallsNeed}`,
    time(user.createdAt),
  ])
  const main = html`<h1>Accounts <small>newest first, UTC</small></h1>
<form class="filters" method="get" action="/accounts">
<label>Address or id <input type="search" name="q" value="${text}" maxlength="254" autocomplete="off" spellcheck="false"></label>
<label>Show <select name="unapproved"><option value="">all accounts</option><option value="true"${isUnapproved && html` selected`}>neither approved nor disabled</option></select></label>
<button type="submit">Search</button>
</form>
<section id="accounts" class="dense" tabindex="-1">${tableOf('Accounts', {
    heads: ['Account', 'Plan', 'State', 'Live calls', 'Since'],
    rows,
    empty: 'No account matches.',
  })}
${next && html`<p><a href="${next}">Earlier accounts</a></p>`}</section>
`
  return textPage(assets, { title: 'Accounts', path: '/accounts', skipTo: ['accounts', 'Skip to the accounts'], main })
}

/**
 * The page of an account: its keys and calls, with forms that change its plan, approve or disable
 * it, and revoke its keys.
 */
export function accountPage(report: AccountReport, assets: Assets): string {
  const { user, apis, keys, connections, failures, calls } = report
  const main = html`<h1>${user.email} <small>${user.id}</small></h1>
<dl class="tiles">
${fact('Plan', `${user.plan} (${user.tier})`)}${fact('State', stateOf(user))}${fact('Live calls', user.liveCallsNeed === null ? 'are answered' : `need ${user.liveCallsNeed}`)}${fact('Since', time(user.createdAt))}
</dl>
<div class="acts">${planForm(user)}${approvalForm(user)}${disableForm(user)}</div>
<section id="account" class="dense" tabindex="-1"><h2>Calls by API <small>today and yesterday, UTC</small></h2>
${tableOf('Calls by API', {
  heads: ['API', 'Day', 'Calls', 'Refused (4xx)', 'Failed (5xx)'],
  rows: apis.map(({ api, day, calls, refused, failed }) => [
    api === '-' ? 'no API' : html`<a href="/accounts?api=${api}">${api}</a>`,
    day,
    ...[calls, refused, failed].map(String),
  ]),
  empty: 'No calls.',
})}</section>
<section><h2>Last failures</h2>${callTable('Last failures', failures)}</section>
<section><h2>Keys</h2>${tableOf('Keys', {
    heads: ['Key', 'Mode', 'Created', 'Last used', 'Action'],
    rows: keys.map((key) => [
      html`${key.label ?? 'no label'} (…${key.lastFour})<small>${key.id}${key.teamId === null ? '' : `, team ${key.teamId}`}</small>`,
      key.environment,
      time(key.createdAt),
      timeOrNever(key.lastUsedAt),
      revokeForm(user.id, key),
    ]),
    empty: 'No keys.',
  })}</section>
<section><h2>Connected applications</h2>${tableOf('Connected applications', {
    heads: ['Application', 'Since', 'Last used'],
    rows: connections.map(({ application, createdAt, lastUsedAt }) => [
      application,
      time(createdAt),
      timeOrNever(lastUsedAt),
    ]),
    empty: 'None.',
  })}</section>
<section><h2>Last calls</h2>${callTable('Last calls', calls)}<p><a href="/calls?account=${user.id}">All calls of the account</a></p></section>
`
  return textPage(assets, {
    title: `Account ${user.email}`,
    path: '/accounts',
    skipTo: ['account', 'Skip to the calls'],
    main,
  })
}

const timeOrNever = (iso: string | null): Html | string => (iso === null ? 'never' : time(iso))

function planForm({ id, tier }: User): Html {
  const options = TIERS.map(
    (each) => html`<option value="${each}"${each === tier && html` selected`}>${PLAN_OF_TIER[each]} (${each})</option>`,
  )
  return html`<form method="post" action="/accounts/${id}"><label>Plan <select name="tier">${options}</select></label> <button type="submit">Change</button></form>`
}

function approvalForm({ id, approved }: User): Html {
  return html`<form method="post" action="/accounts/${id}"><button type="submit" name="approved" value="${String(!approved)}">${approved ? 'Withdraw the approval' : 'Approve the account'}</button></form>`
}

/**
 * The button that disables an account appears only after a click, like the button that revokes a
 * key. Actions that can be undone without loss have no such question.
 */
function disableForm({ id, disabled }: User): Html {
  const form = (text: string, before?: Html) =>
    html`<form method="post" action="/accounts/${id}">${before}<button type="submit" name="disabled" value="${String(!disabled)}">${text}</button></form>`
  if (disabled) return form('Enable the account')
  const words = html`<p>It cannot log in, and its calls are refused from the next request on. Calls that wait are cancelled.</p>`
  return html`<details><summary>Disable the account</summary>${form('Disable it now', words)}</details>`
}

/** Asks for confirmation: the button that revokes a key appears only after a click. */
function revokeForm(accountId: string, { id, label, lastFour }: AccountReport['keys'][number]): Html {
  const name = `${label ?? 'no label'} (…${lastFour})`
  return html`<details><summary aria-label="Revoke ${name}">Revoke</summary><form method="post" action="/accounts/${accountId}/keys/${id}/revoke"><p>Applications that use ${name} stop working at once.</p><button type="submit">Revoke it now</button></form></details>`
}

function stateOf({ disabled, approved, emailVerified }: User): string {
  if (disabled) return 'disabled'
  return approved ? 'approved' : emailVerified ? 'address verified' : 'address not verified'
}

/** The accounts that use the cap of an API. */
export function apiAccountsPage(slug: string, accounts: AccountUsage[], assets: Assets): string {
  const rows = accounts.map(({ id, email, calls, refused, failed }) => [
    accountLink({ id, email }),
    ...[calls, refused, failed].map(String),
  ])
  const main = html`<h1>Accounts of ${slug} <small>today, UTC · <a href="/queues/${slug}">queue</a></small></h1>
<section id="accounts" tabindex="-1">${tableOf('Accounts', { heads: ['Account', 'Calls', 'Refused (4xx)', 'Failed (5xx)'], rows, empty: 'Nobody has called it today.' })}</section>
`
  return textPage(assets, { title: `Accounts of ${slug}`, skipTo: ['accounts', 'Skip to the accounts'], main })
}
