import { actionButton, actionForm, failureCard, returnFocus, showAccount, table } from './account-view.js'
import { api, apiAll } from './api.js'
import { confirmed, el, field, moment, select, toast } from './dom.js'
import { createdCard, keyForm, keyTable } from './keys.js'
import { forPeople } from './words.js'

/** Teams: list and create. One team at a time is shown in full, and its address can be shared. */
export function startTeams(view) {
  let openId = new URLSearchParams(location.search).get('team') ?? undefined
  let created
  const show = (id) => {
    openId = id
    history.replaceState(history.state, '', id ? `${location.pathname}?team=${id}` : location.pathname)
  }
  return showAccount(view, async (refresh) => {
    const { teams } = await apiAll('/v1/teams')
    const open = (id) => async () => {
      show(openId === id ? undefined : id)
      created = undefined
      await refresh()
    }
    const create = actionForm(
      { class: 'inline', name: 'team' },
      async ({ name }) => {
        const { team } = await api('/v1/teams', { method: 'POST', body: { name } })
        show(team.id)
        await refresh()
      },
      field('Name', el('input', { name: 'name', required: true, maxlength: 100, autocomplete: 'off' })),
      el('button', { class: 'button', type: 'submit' }, 'Create team'),
    )
    const onMade = async (made) => {
      const card = createdCard(made)
      created = { id: made.id, card }
      await refresh()
      card.focus()
    }
    const onRevoked = async (keyId) => {
      if (created?.id === keyId) created = undefined
      await refresh()
    }
    const rows = teams.map((team) => [
      team.name,
      moment(team.createdAt, 'unknown'),
      actionButton(
        team.id === openId ? 'Close' : 'Open',
        { 'aria-expanded': String(team.id === openId), 'aria-label': `Open ${team.name}` },
        open(team.id),
      ),
    ])
    return [
      created?.card,
      el('section', { class: 'card' }, el('h2', {}, 'New team'), create),
      teams.length === 0
        ? el('p', { class: 'empty' }, 'No teams yet. A team has keys of its own, which its admins manage.')
        : table('Teams', ['Name', 'Created', 'Action'], rows),
      // Skipped after the visitor has left the open team.
      teams.some(({ id }) => id === openId) &&
        (await teamSection(openId, refresh, { onMade, onRevoked }).catch(failureCard)),
    ]
  })
}

async function teamSection(id, refresh, { onMade, onRevoked }) {
  const { team, members, keys, yourRole } = await api(`/v1/teams/${id}`)
  const me = await api('/v1/me')
  const isManager = yourRole === 'owner' || yourRole === 'admin'
  return el(
    'section',
    { class: 'card', 'aria-label': team.name },
    el('h2', {}, team.name),
    el('p', { class: 'small' }, `Your role: ${yourRole}`),
    el('p', { class: 'small' }, planWords(members, me)),
    isManager && renameForm(team, refresh),
    el('h3', {}, 'Members'),
    table(
      'Members',
      ['Email', 'Role', 'Joined', 'Action'],
      members.map((member) => memberRow(team, member, { me, yourRole, isManager, keys, refresh })),
    ),
    isManager && addForm(team, refresh),
    el('h3', {}, 'Keys of the team'),
    isManager ? keyForm({ teamId: team.id }, onMade) : undefined,
    keys.length === 0
      ? el('p', { class: 'empty' }, 'No keys yet.')
      : keyTable(keys, isManager ? { onRevoked, onMade, onChanged: refresh } : undefined),
    isManager && el('p', {}, el('a', { href: `/account/provider-keys?team=${team.id}` }, 'Provider keys of the team')),
    yourRole === 'owner' && deleteButton(team, refresh),
  )
}

/** The account whose limits apply to calls with the team's keys. */
function planWords(members, me) {
  const owner = members.find(({ role }) => role === 'owner')
  const whose = owner?.id === me.id ? 'your plan' : `the plan of ${owner?.email ?? 'the owner'}`
  return `Calls with the team’s keys count against ${whose}.`
}

function deleteButton(team, refresh) {
  return actionButton('Delete team', { class: 'button danger' }, async () => {
    const question = `Delete ${team.name}? Its keys are refused at once; apps using them stop working.`
    if (!(await confirmed(question, 'Delete'))) return
    await api(`/v1/teams/${team.id}`, { method: 'DELETE' })
    toast('The team has been deleted')
    await refresh()
  })
}

/** Transfers the team. The visitor stays in it as a plain member. */
function ownerButton(team, member, refresh) {
  return actionButton('Make owner', { 'aria-label': `Make ${member.email} the owner` }, async () => {
    const question = `Make ${member.email} the owner of ${team.name}? Keys that ${member.email} did not make stop working, and everybody else, including you, becomes a plain member.`
    if (!(await confirmed(question, 'Make owner'))) return
    await api(`/v1/teams/${team.id}/transfer`, { method: 'POST', body: { memberId: member.id } })
    toast('The team has a new owner')
    await refresh()
  })
}

function renameForm(team, refresh) {
  return actionForm(
    { class: 'inline', name: `rename ${team.id}` },
    async ({ name }) => {
      await api(`/v1/teams/${team.id}`, { method: 'PUT', body: { name } })
      toast('The team has been renamed')
      await refresh()
    },
    field(
      'Rename to',
      el('input', { name: 'name', required: true, maxlength: 100, value: team.name, autocomplete: 'off' }),
    ),
    el('button', { class: 'button quiet', type: 'submit' }, 'Rename'),
  )
}

function addForm(team, refresh) {
  return actionForm(
    { class: 'inline', name: `add ${team.id}` },
    async (body) => {
      await api(`/v1/teams/${team.id}/members`, { method: 'POST', body })
      toast('The member has been added')
      await refresh()
    },
    field('Email', el('input', { name: 'email', type: 'email', required: true, autocomplete: 'off' })),
    field('Role', select({ name: 'role' }, [['member'], ['admin']])),
    el('button', { class: 'button', type: 'submit' }, 'Add member'),
  )
}

function memberRow(team, member, { me, yourRole, isManager, keys, refresh }) {
  const path = `/v1/teams/${team.id}/members/${member.id}`
  const made = keys.filter(({ createdBy }) => createdBy === member.id).length
  const isSelf = member.id === me.id
  const role = yourRole === 'owner' && member.role !== 'owner' ? roleSelect(member, path, refresh) : member.role
  const mayRemove = member.role !== 'owner' && (isManager || isSelf)
  const remove = mayRemove
    ? actionButton(isSelf ? 'Leave' : 'Remove', { 'aria-label': `Remove ${member.email}` }, async () => {
        const question = isSelf ? `Leave ${team.name}?` : `Remove ${member.email} from ${team.name}?`
        const ending = made > 0 ? keyChoice(made, isSelf ? 'you' : member.email) : undefined
        if (!(await confirmed(question, isSelf ? 'Leave' : 'Remove', ending?.row))) return
        const query = ending?.box.checked ? '?revokeKeys=true' : ''
        await api(`${path}${query}`, { method: 'DELETE' })
        await refresh()
      })
    : ''
  const name =
    member.emailVerified === false && document.querySelector('[data-proves-addresses]')
      ? el('span', {}, member.email, ' ', el('span', { class: 'badge' }, 'email not verified'))
      : (member.email ?? member.id)
  const actions = el(
    'div',
    { class: 'actions' },
    yourRole === 'owner' && !isSelf && ownerButton(team, member, refresh),
    remove,
  )
  return [name, role, moment(member.joinedAt, 'unknown'), actions]
}

/**
 * The maker of a key may have kept it, so it would still work after the maker has left, unless it
 * is revoked too.
 */
function keyChoice(count, maker) {
  const box = el('input', { type: 'checkbox' })
  const which = count === 1 ? 'the key' : `the ${count} keys`
  const text = ` Also end ${which} of the team that ${maker} made; apps using ${count === 1 ? 'it' : 'them'} stop working.`
  return { box, row: el('label', { class: 'choice' }, box, text) }
}

function roleSelect(member, path, refresh) {
  const control = select({ 'aria-label': `Role of ${member.email}` }, [['member'], ['admin']])
  control.value = member.role
  control.addEventListener('change', async () => {
    // Of two changes at once, the earlier might arrive later.
    control.disabled = true
    try {
      await api(path, { method: 'PUT', body: { role: control.value } })
      toast('The role has been changed')
    } catch (error) {
      toast(forPeople(error))
    }
    await refresh()
    returnFocus(control)
  })
  return control
}
