import { actionButton, actionForm, failureCard } from './account-view.js'
import { api } from './api.js'
import { el, field } from './dom.js'
import { writeTick, writingApis } from './limits.js'
import { beginSession, endSession } from './session.js'

/**
 * The consent page: which application asks, where its code goes, and what it may do. The user
 * decides.
 */
export async function startConnect(view) {
  const body = view.querySelector('[data-body]')
  const show = async () => {
    try {
      const details = await api(`${location.pathname}/details`)
      const account = await api('/v1/me').catch((error) => {
        if (error.status === 401) return undefined
        throw error
      })
      const form = account ? await consentForm(details, account, show) : credentialForms(show)
      body.replaceChildren(...applicationFacts(details), ...form)
    } catch (error) {
      const isOver = error.status === 404
      body.replaceChildren(
        isOver ? el('p', { class: 'failure', role: 'alert' }, `${error.message} ${error.hint}`) : failureCard(error),
      )
    } finally {
      body.setAttribute('aria-busy', 'false')
    }
  }
  await show()
}

/**
 * Facts that the gateway knows come first. The application's name is free text, shown on one line.
 */
function applicationFacts({ clientName, clientHost, redirectHost, resource }) {
  return [
    el('p', { class: 'notice' }, 'Continue only if you started this in that application a moment ago.'),
    el(
      'dl',
      { class: 'facts' },
      ...fact('Redirects to', el('code', { 'data-redirect-host': true }, redirectHost)),
      ...fact('Application', clientHost ? `described at ${clientHost}` : 'registered itself; its name is not verified'),
      ...fact('Calls itself', el('strong', { 'data-client': true, class: 'one-line' }, clientName)),
      ...fact('Access to', el('code', {}, resource)),
    ),
  ]
}

function fact(name, value) {
  return [el('dt', {}, name), el('dd', {}, value)]
}

/** Log-in and sign-up without leaving this page, which holds the way back to the application. */
function credentialForms(onDone) {
  const form = (action, title, autocomplete) =>
    el(
      'section',
      { class: 'card' },
      el('h2', {}, title),
      actionForm(
        {},
        async (credentials) => {
          await beginSession(action, credentials)
          await onDone()
        },
        field('Email', el('input', { name: 'email', type: 'email', autocomplete: 'email', required: true })),
        field('Password', el('input', { name: 'password', type: 'password', autocomplete, required: true })),
        el('button', { class: 'button', type: 'submit' }, title),
      ),
    )
  const isSignupOpen = document.querySelector('[data-signup-open]')
  /** @type {HTMLElement | null} */
  const atProvider = document.querySelector('[data-provider-name]')
  const next = encodeURIComponent(location.pathname)
  const words = `Sign in with ${atProvider?.dataset.providerName}`
  return [
    ...(atProvider ? [el('p', {}, el('a', { class: 'button big', href: `/login/oidc?next=${next}` }, words))] : []),
    form('login', 'Log in', 'current-password'),
    ...(isSignupOpen ? [form('signup', 'Create account', 'new-password')] : []),
  ]
}

const limitField = (name, label) =>
  field(
    label,
    el('input', { name, type: 'number', min: 1, max: 1_000_000_000, step: 1, inputmode: 'numeric' }),
    "Leave empty for your plan's limit.",
  )

/** The limits in the fields, as numbers. */
const numbers = (texts) =>
  Object.fromEntries(
    Object.entries(texts).flatMap(([name, text]) => (text === undefined ? [] : [[name, Number(text)]])),
  )

/** All APIs, or some of them. */
function apiChoice(apis) {
  const boxes = apis.map(({ api_name, display_name }) =>
    el(
      'label',
      { class: 'choice' },
      el('input', { type: 'checkbox', name: 'api', value: api_name }),
      ` ${display_name}`,
    ),
  )
  const list = el('fieldset', { class: 'choices', hidden: true }, el('legend', {}, 'These APIs'), ...boxes)
  const showList = ({ target }) => {
    list.hidden = target.value !== 'some'
  }
  const scope = (value, text, checked) =>
    el(
      'label',
      { class: 'choice' },
      el('input', { type: 'radio', name: 'scope', value, checked, onchange: showList }),
      ` ${text}`,
    )
  return el('div', {}, scope('all', 'All APIs', true), scope('some', 'Only these', false), list)
}

async function consentForm({ resource }, { email }, onLoggedOut) {
  const one = /\/mcp\/([a-z0-9-]+)$/.exec(resource)?.[1]
  const { data } = await api('/v1/catalog')
  const writers = writingApis(data).filter((slug) => one === undefined || slug === one)
  const { tick, showFor, read: readTick } = writeTick()
  /** After each change of a choice, the checkbox names the chosen APIs for which it matters. */
  const showTick = (form) => {
    const chosen = new FormData(form)
    const isChosen = (slug) => chosen.get('scope') !== 'some' || chosen.getAll('api').includes(slug)
    showFor(writers.filter(isChosen))
  }
  const decide = async (decision) => {
    const { location: next } = await api(`${location.pathname}/decision`, { method: 'POST', body: decision })
    location.assign(next)
  }
  const form = actionForm(
    { class: 'card', onchange: ({ currentTarget }) => showTick(currentTarget) },
    async ({ perMinute, perMonth, inFlight, scope: chosen }, target) => {
      const chosenApis = [...new FormData(target)].filter(([name]) => name === 'api').map(([, value]) => value)
      await decide({
        allow: true,
        ...(chosen === 'some' ? { apis: chosenApis } : {}),
        ...numbers({ perMinute, perMonth, inFlight }),
        ...readTick(),
      })
    },
    el('button', { class: 'button big', type: 'submit' }, 'Allow'),
    ' ',
    actionButton('Refuse', {}, () => decide({ allow: false })),
    el('p', {}, 'Account, whose plan counts the calls: ', el('strong', { class: 'one-line' }, email)),
    // In this page, because the menu's log-out would leave the sign-in.
    actionButton('Use another account', {}, async () => {
      await endSession()
      await onLoggedOut()
    }),
    one ? el('p', {}, 'It may call the API ', el('code', {}, one), ' and no other.') : apiChoice(data),
    tick,
    limitField('perMonth', 'Maximum calls a month'),
    limitField('perMinute', 'Maximum calls a minute'),
    limitField('inFlight', 'Maximum calls at once'),
    el(
      'p',
      { class: 'small' },
      'It may call from any address. It cannot see or change your account, keys or teams. Under Account, Connected apps, you can bind it to addresses and disconnect it.',
    ),
  )
  showTick(form)
  return [form]
}
