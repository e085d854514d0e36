import { numberWords } from '../../catalog/limit-words.ts'
import { type Html, html } from '../../pages/html.ts'
import type { Visit } from '../catalog-view.ts'

/** What each plan may call, summed up over all APIs. */
export function planTable(plans: Visit['plans'], caption: string): Html {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Limits of the plans"><table><caption>${caption}</caption><thead><tr><th scope="col">Plan</th><th scope="col">Per minute</th><th scope="col">Per month</th><th scope="col">At once</th></tr></thead><tbody>${Object.entries(
    plans,
  ).map(
    ([name, { perMinute, perMonth, inFlight }]) =>
      html`<tr><th scope="row">${name}</th><td>${numberWords(perMinute)}</td><td>${numberWords(perMonth)}</td><td>${numberWords(inFlight)}</td></tr>`,
  )}</tbody></table></div>`
}
