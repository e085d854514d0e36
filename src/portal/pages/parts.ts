import type { Tier } from '../../catalog/upstream.ts'
import { PLAN_OF_TIER } from '../../limits/plans.ts'
import { type Html, html } from '../../pages/html.ts'
import type { Condition } from '../condition.ts'

/** An API's state as a word and a colour. The tooltip has the score. */
export function healthBadge({ word, score }: Condition): Html {
  const style = word.toLowerCase().replaceAll(' ', '-')
  return html`<span class="badge health ${style}"${score === undefined ? '' : html` title="Health score ${score} of 100"`}>${word}</span>`
}

/** The lowest plan that may call an API. */
export function planBadge({ tierRequired }: { tierRequired: Tier }): Html {
  return html`<span class="badge">${PLAN_OF_TIER[tierRequired]} plan</span>`
}

/** A name with a capital letter, `Weather`. */
export const capitalized = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1)

/** A sentence; text between backticks becomes code. */
export function withCode(sentence: string): Html {
  return html`${sentence.split('`').map((part, index) => (index % 2 === 0 ? part : html`<code>${part}</code>`))}`
}

/** A time in UTC. Scripts replace it by the visitor's time zone. */
export function moment(at: number | string): Html {
  const iso = new Date(at).toISOString()
  return html`<time datetime="${iso}" data-moment>${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC</time>`
}

/** A block of code with a button that copies it. */
export function codeBlock(code: string, label: string): Html {
  return html`<div class="code"><pre tabindex="0" aria-label="${label}"><code>${code}</code></pre><button type="button" class="copy" data-copy>Copy<span class="sr"> ${label}</span></button></div>`
}

/** The same call in several languages, in tabs. Without scripts all are shown. */
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
