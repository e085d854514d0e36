import { durationWords } from '../browser/timing-bar.js'
import type { Assets } from '../pages/assets.ts'
import { type Html, html, trusted } from '../pages/html.ts'
import type { LoggedCallAnswer } from '../telemetry/logged-call.ts'
import { table } from './browser/parts.js'
import { type ConsolePage, consolePage, consoleStyles } from './console-page.ts'

const STYLES = ['browser/base.css', ...consoleStyles('frame', 'overview', 'tables', 'queues', 'text')]

/** A page of calls or accounts. No script updates it. */
export function textPage(
  assets: Assets,
  { title, ...rest }: Pick<ConsolePage, 'title' | 'path' | 'skipTo' | 'main'>,
): string {
  return consolePage(assets, { title: `${title} · Agent API Gateway console`, styles: STYLES, ...rest })
}

export function callTable(label: string, calls: LoggedCallAnswer[]): Html {
  return callRows(label, { heads: CALL_HEADS, rows: calls.map(callCells), empty: 'None in the log.' })
}

export const CALL_HEADS = ['Ended', 'API', 'Answer', 'Took', 'Came by']

export function callCells(call: LoggedCallAnswer): (string | Html)[] {
  return [
    html`<a href="/calls/${call.id}">${time(call.at)}</a>`,
    nameOf(call),
    html`${statusOf(call)}${call.cause === null ? '' : html`<small>${call.cause}</small>`}`,
    durationWords(call.totalMs),
    `${call.via}, ${call.mode}`,
  ]
}

/** A table, or a sentence if it has no rows. */
export function tableOf(
  label: string,
  { heads, rows, empty }: { heads: string[]; rows: (string | Html)[][]; empty: string },
): Html {
  if (rows.length === 0) return none(empty)
  return trusted(table(label, heads, rows.map((cells) => cells.map((cell) => html`${cell}`.text)))) // biome-ignore format: one line
}

/** On a phone the values of a call stand beside each other, because they need no headings. */
export function callRows(label: string, table: Parameters<typeof tableOf>[1]): Html {
  return html`<div class="brief">${tableOf(label, table)}</div>`
}

export function fact(name: string, value: string | Html): Html {
  return html`<div class="tile fact"><dt>${name}</dt><dd>${value}</dd></div>`
}

export function none(text: string): Html {
  return html`<p class="calm">${text}</p>`
}

/** A deleted account has no page, but its calls stay in the log. */
export function accountLink({ id, email }: { id: string; email: string | null }): Html {
  return email === null
    ? html`<a class="account" href="/calls?account=${id}">${id.slice(0, 8)}… (gone)</a>`
    : html`<a class="account" href="/accounts/${id}">${email}</a>`
}

export const nameOf = ({ api, endpoint }: LoggedCallAnswer): string =>
  api === '-' ? 'no API' : `${api}${endpoint ?? ''}`

export function statusOf({ status, code }: LoggedCallAnswer): Html {
  return html`<span class="${status < 400 ? 'ok' : 'bad'}">${status}${code === null ? '' : ` ${code}`}</span>`
}

/** A time in UTC, to the second. */
export function time(iso: string): Html {
  return html`<time datetime="${iso}">${iso.slice(0, 19).replace('T', ' ')}</time>`
}
