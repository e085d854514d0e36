/**
 * Buttons that act on an API: they ask for confirmation, send the request, and show the result as a
 * notice.
 */
const WORDS = {
  pause: ['Pause', 'Workers run no more calls of this API until somebody resumes it.'],
  resume: ['Resume', 'Workers run the waiting calls of this API again.'],
  probe: ['Probe', 'The gateway sends the API one request now, which counts against its cap.'],
  disable: ['Disable', 'The gateway refuses calls of this API, and removes it from the catalog.'],
  enable: ['Enable', 'The gateway shows this API in the catalog and accepts its calls.'],
}

const notice = document.getElementById('notice')

document.addEventListener('click', ({ target }) => {
  /** @type {HTMLElement | null} */
  const button = target instanceof Element ? target.closest('button[data-action]') : null
  if (button) confirmAction(button.dataset)
})

/** @param {DOMStringMap} what the data of a button */
function confirmAction({ action, slug, waiting }) {
  const [verb, text] = WORDS[action]
  const dialog = /** @type {HTMLDialogElement} */ (document.getElementById('confirm'))
  document.getElementById('confirm-title').textContent = `${verb} ${slug}?`
  const now = action === 'pause' && Number(waiting) > 0 ? ` ${waiting} waiting now.` : ''
  document.getElementById('confirm-text').textContent = text + now
  document.getElementById('confirm-mode').hidden = action !== 'pause'
  document.getElementById('confirm-yes').textContent = verb
  dialog.returnValue = ''
  dialog.onclose = () => {
    if (dialog.returnValue !== 'yes') return
    /** @type {HTMLInputElement} */
    const chosen = document.querySelector('#confirm-mode input:checked')
    act({ action, slug, verb, body: action === 'pause' ? { mode: chosen.value } : undefined })
  }
  dialog.showModal()
}

function probeWords(outcome) {
  if (!outcome) return 'no result yet. Check that a worker is running and that the cap has room.'
  return outcome.code === null ? `${outcome.words}.` : `failed: ${outcome.words} (${outcome.code}).`
}

let hiding

async function act({ action, slug, verb, body }) {
  notice.textContent = ''
  const path = `/v1/operator/upstreams/${encodeURIComponent(slug)}`
  try {
    const isSetting = action === 'enable' || action === 'disable'
    const sent = isSetting ? { enabled: action === 'enable' } : body
    const response = await fetch(isSetting ? path : `${path}/${action}`, {
      method: isSetting ? 'PATCH' : 'POST',
      ...(sent ? { headers: { 'content-type': 'application/json' }, body: JSON.stringify(sent) } : {}),
    })
    const answer = await response.json().catch(() => undefined)
    notice.textContent = response.ok
      ? `${verb} ${slug}: ${action === 'probe' ? probeWords(answer?.outcome) : 'done.'}`
      : `${verb} ${slug}: ${answer?.message ?? `refused (${response.status})`}`
  } catch {
    notice.textContent = `${verb} ${slug}: the console did not answer.`
  }
  notice.classList.add('shown')
  clearTimeout(hiding)
  hiding = setTimeout(() => notice.classList.remove('shown'), 6000)
}
