import { actionForm, showAccount } from './account-view.js'
import { api } from './api.js'
import { el, field, moment, toast } from './dom.js'
import { warnOfWeak } from './password.js'
import { verificationNotice } from './verification.js'

/** Who is logged in, and the password. */
export function startSettings(view) {
  return showAccount(view, async () => {
    const me = await api('/v1/me')
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
      el('section', { class: 'card' }, el('h2', {}, 'Password'), passwordForm(me.email)),
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
      toast('The password is changed; every other session has ended')
    },
    // Password managers want to know whose it is.
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
