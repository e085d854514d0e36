import type { UpstreamRow } from '../fleet/snapshot.ts'
import { html } from '../pages/html.ts'

/** The question before an action on an API; `browser/actions.js` fills it. */
export const CONFIRM_DIALOG = html`<dialog id="confirm" aria-labelledby="confirm-title" aria-describedby="confirm-text">
<form method="dialog"><h2 id="confirm-title"></h2><p id="confirm-text"></p>
<fieldset id="confirm-mode" hidden><legend>New calls</legend>
<label><input type="radio" name="mode" value="refuse" checked> refuse them at once: callers get 503 API_PAUSED</label>
<label><input type="radio" name="mode" value="hold"> hold them: they wait, and end with 503 at their deadline if it comes first</label></fieldset>
<menu><button value="no" class="quiet">Cancel</button><button value="yes" id="confirm-yes"></button></menu></form>
</dialog>
<p id="notice" role="status" aria-live="polite"></p>`

/** What an operator can do to an API. */
export function apiActions({ slug, paused, enabled, queue }: UpstreamRow) {
  const waiting = queue?.waiting ?? 0
  const button = (action: string, text: string) =>
    html`<button type="button" data-action="${action}" data-slug="${slug}" data-waiting="${waiting}" aria-label="${text} ${slug}">${text}</button>`
  return html`<p class="actions">${[
    paused === null ? button('pause', 'Pause') : button('resume', 'Resume'),
    button('probe', 'Probe'),
    enabled ? button('disable', 'Disable') : button('enable', 'Enable'),
  ]}</p>`
}
