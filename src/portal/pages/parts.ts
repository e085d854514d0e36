import { type Html, html } from '../../http/html.ts'
import type { ApiState } from '../catalog-view.ts'
import { healthWord } from '../catalog-view.ts'

/** An API's health in a word, a colour and a number. */
export function healthBadge({ health_score }: ApiState): Html {
  const word = healthWord(health_score)
  return html`<span class="badge health ${word.toLowerCase()}" title="Health score ${health_score} of 100">${word} <b>${health_score}</b></span>`
}

const PLAN_WORDS: Record<string, string> = {
  developer: 'Free',
  pro: 'Pro',
  business: 'Elite',
  enterprise: 'Elite (contract)',
}

/** The lowest plan that may call an API. */
export function planBadge({ tier_required }: ApiState): Html {
  return html`<span class="badge">${PLAN_WORDS[tier_required] ?? tier_required}${tier_required === 'developer' ? '' : ' plan'}</span>`
}

/** A block of code that is copied with one click. */
export function codeBlock(code: string, label: string): Html {
  return html`<div class="code"><pre tabindex="0" aria-label="${label}"><code>${code}</code></pre><button type="button" class="copy" data-copy>Copy<span class="sr"> ${label}</span></button></div>`
}

/** The same call in several languages, one shown at a time. Without scripts all are shown. */
export function codeTabs(id: string, codes: Record<string, string>): Html {
  const names = Object.keys(codes)
  return html`<div class="tabs" data-tabs>
<div role="tablist" aria-label="Language">${names.map(
    (name, index) =>
      html`<button type="button" role="tab" id="${id}-tab-${index}" aria-controls="${id}-panel-${index}" aria-selected="${index === 0 ? 'true' : 'false'}" tabindex="${index === 0 ? '0' : '-1'}">${name}</button>`,
  )}</div>
${names.map(
  (name, index) =>
    html`<div role="tabpanel" id="${id}-panel-${index}" aria-labelledby="${id}-tab-${index}" data-language="${name}"${index === 0 ? '' : html` hidden`}>${codeBlock(codes[name] ?? '', name)}</div>`,
)}
</div>`
}
