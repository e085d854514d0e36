import { type Html, html, trusted } from '../../pages/html.ts'

/** The icon of each category, as the path of a line in a square of 24 units. */
const PATHS: Record<string, string> = {
  animals: 'M8 13c-3 1-4 4-2 6s4 0 6 0 4 2 6 0 1-5-2-6-2-3-4-3-2 2-4 3M5 9v2M9 5v2M15 5v2M19 9v2',
  calendar: 'M5 6h14v14H5zM5 10h14M9 3v5M15 3v5M9 14h2M14 14h1M9 17h2',
  developer: 'M8 8l-4 4 4 4M16 8l4 4-4 4M13 6l-2 12',
  economy: 'M4 20h16M6 20v-5M11 20v-9M16 20V7M5 9l5-4 4 2 5-4',
  entertainment: 'M4 8h16v12H4zM4 8l2-4h14M9 8l2-4M14 8l2-4M11 12v4l3-2z',
  finance: 'M12 4a8 8 0 1 0 .1 0M15 9c-1-1-5-1.5-5 .8 0 2.5 5 1 5 3.6 0 2.4-4 2.2-5.5 1M12 6.500v11',
  food: 'M7 4v7a2 2 0 0 0 2 2v7M5 4v5M9 4v5M16 4c-2 2-2 8 0 9v7',
  games: 'M7 8h10c3 0 4 9 2 10s-3-3-4-3H9c-1 0-2 4-4 3S4 8 7 8M8 10v3M6.5 11.500h3M15 11h1M17 13h1',
  geography: 'M12 21c-4-5-6-8-6-11a6 6 0 0 1 12 0c0 3-2 6-6 11M12 8a2 2 0 1 0 .1 0',
  knowledge: 'M12 6c-2-2-5-2-8-2v14c3 0 6 0 8 2 2-2 5-2 8-2V4c-3 0-6 0-8 2v14',
  network: 'M12 4a8 8 0 1 0 .1 0M4 12h16M12 4c-3 3-3 13 0 16M12 4c3 3 3 13 0 16',
  news: 'M4 5h13v15H6a2 2 0 0 1-2-2zM17 9h3v9a2 2 0 0 1-3 2M7 9h7M7 12h7M7 15h4',
  reference: 'M6 4h12v16H6zM6 16h12M9 8h6M9 11h4',
  science: 'M10 4h4M11 4v6l-5 8c-.6 1 0 2 1 2h10c1 0 1.6-1 1-2l-5-8V4M8 15h8',
  search: 'M10.5 4.500a6 6 0 1 0 .1 0M15 15l5 5',
  sports: 'M12 4a8 8 0 1 0 .1 0M4 12h16M7 6c3 3 3 9 0 12M17 6c-3 3-3 9 0 12',
  time: 'M12 4a8 8 0 1 0 .1 0M12 8v4l3 2',
  weather: 'M7 18a4 4 0 1 1 .6-7.900A5 5 0 0 1 17 11.500a3.3 3.3 0 0 1 0 6.500zM17 4v2M21 8h-2M20 4.500l-1.5 1.5',
}

/** The icon for categories of an operator's own APIs. */
const ANY = 'M5 5h14v14H5zM9 9h6v6H9z'

/** The icon of a category, which helps to find a card. The name stands beside it. */
export function categoryIcon(category: string): Html {
  return html`<svg class="category" viewBox="0 0 24 24" aria-hidden="true"><path d="${trusted(PATHS[category] ?? ANY)}"></path></svg>`
}
