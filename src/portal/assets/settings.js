import { actionButton, actionForm, download, returnFocus, showAccount } from './account-view.js'
import { api } from './api.js'
import { confirmed, el, field, moment, toast } from './dom.js'
import { visit } from './navigate.js'
import { warnOfWeak } from './password.js'
import { endSession } from './session.js'
import { verificationNotice } from './verification.js'
import { forPeople } from './words.js'

/** The account's email address, password, data, and deletion. */
export function startSettings(view) {
  return showAccount(view, async () => {
    const me = await api('/v1/me')
    const sendsMail = view.dataset.provesAddresses !== undefined
    const notices = sendsMail && (await api('/v1/me/notices'))
    return [
      await verificationNotice(view),
      el(
        'section',
        { class: 'card' },
        el('h2', {}, 'Account'),
        el(
          'dl',
          { class: 'facts' },
          el('div', {}, el('dt', {}, 'Email'), el('dd', {}, me.email)),
          ...(me.termsAcceptedAt === null
            ? []
            : [el('div', {}, el('dt', {}, 'Terms accepted'), el('dd', {}, moment(me.termsAcceptedAt)))]),
        ),
      ),
      el('section', { class: 'card' }, el('h2', {}, 'Password'), passwordForm(me.email), noPasswordWords(sendsMail)),
      notices && el('section', { class: 'card' }, el('h2', {}, 'Notices by mail'), noticesForm(notices)),
      el('section', { class: 'card' }, el('h2', {}, 'Your data'), ...dataParts()),
      el('section', { class: 'card' }, el('h2', {}, 'Delete the account'), leaveForm(me.email)),
    ]
  })
}

function passwordForm(email) {
  const next = el('input', {
    name: 'newPassword',
    type: 'password',
    required: true,
    minlength: 8,
    autocomplete: 'new-password',
  })
  const warning = el('p', { class: 'small warn', role: 'status', hidden: true })
  warnOfWeak(next, warning)
  return actionForm(
    { class: 'stack' },
    async (body, form) => {
      await api('/v1/auth/password', { method: 'POST', body })
      form.reset()
      toast('The password has been changed; every other session has ended')
    },
    // Password managers need the name of the account.
    el('input', { type: 'email', value: email, autocomplete: 'username', hidden: true, readonly: true }),
    field(
      'Current password',
      el('input', { name: 'currentPassword', type: 'password', required: true, autocomplete: 'current-password' }),
    ),
    field('New password', next, '8 characters or more. All other sessions end.'),
    warning,
    el('button', { class: 'button', type: 'submit' }, 'Change password'),
  )
}

/** Explains how a person who signs in at a provider gets the password for these forms. */
function noPasswordWords(sendsMail) {
  return el(
    'p',
    { class: 'small' },
    'If you have no password, or do not know it, ',
    ...(sendsMail
      ? [el('a', { href: '/forgot' }, 'have a link mailed that sets a password'), '.']
      : ['the operator of this gateway can give you a link that sets a password.']),
  )
}

function noticesForm({ byMail }) {
  const box = el('input', { type: 'checkbox', checked: byMail })
  box.addEventListener('change', async () => {
    // Of two changes at once, the earlier might arrive later.
    box.disabled = true
    try {
      await api('/v1/me/notices', { method: 'PUT', body: { byMail: box.checked } })
      toast(box.checked ? 'You get notices by mail' : 'You no longer get notices')
    } catch (error) {
      box.checked = !box.checked
      toast(forPeople(error))
    } finally {
      box.disabled = false
      returnFocus(box)
    }
  })
  return el(
    'label',
    { class: 'choice' },
    box,
    ' When 80 and 100 % of a month are used, and seven days and one day before a key expires',
  )
}

function dataParts() {
  return [
    el(
      'p',
      {},
      'One JSON file with everything stored about the account, without secrets. ',
      el('a', { href: '/docs/guides/your-data' }, 'What is kept, and for how long'),
      '.',
    ),
    actionButton('Download my data', {}, () =>
      download('/v1/me/export', { name: 'account.json', type: 'application/json' }),
    ),
  ]
}

function leaveForm(email) {
  return actionForm(
    { class: 'stack' },
    async (body) => {
      const question = `Delete the account of ${email}? Its keys and connected apps stop working at once. This cannot be undone.`
      if (!(await confirmed(question, 'Delete the account'))) return
      await api('/v1/me', { method: 'DELETE', body })
      await endSession()
      toast('The account has been deleted')
      await visit('/')
    },
    el(
      'p',
      {},
      'Hand over or delete the teams that you own first, on ',
      el('a', { href: '/account/teams' }, 'Teams'),
      '.',
    ),
    el('input', { type: 'email', value: email, autocomplete: 'username', hidden: true, readonly: true }),
    field(
      'Your password',
      el('input', { name: 'password', type: 'password', required: true, autocomplete: 'current-password' }),
    ),
    el('button', { class: 'button danger', type: 'submit' }, 'Delete my account'),
  )
}
