import { actionButton } from './account-view.js'
import { api } from './api.js'
import { el, toast } from './dom.js'

/**
 * What an account still has to do or wait for before it can make live calls or be added to a team;
 * undefined for most accounts.
 */
export async function verificationNotice(view) {
  const { emailVerified, liveCallsNeed } = await api('/v1/auth/verification')
  if (liveCallsNeed === 'approval') {
    const text = 'The operator has not approved this account yet. Until then live calls are refused; test calls work.'
    return el('p', { class: 'notice' }, text)
  }
  if (emailVerified || view.dataset.provesAddresses === undefined) return undefined
  const until =
    liveCallsNeed === 'verification'
      ? 'Until then live calls are refused; test calls work.'
      : 'Until then, nobody can add you to a team.'
  return el(
    'div',
    { class: 'notice' },
    el(
      'p',
      {},
      `Your email address is not verified yet. Open the link in the mail that this gateway sent you. ${until}`,
    ),
    actionButton('Send it again', {}, async () => {
      await api('/v1/auth/verification', { method: 'POST' })
      toast('The mail is on its way')
    }),
  )
}
