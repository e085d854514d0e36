import { field, record, required } from '../catalog/fields.ts'
import { integer, members } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { param } from '../catalog/parameters.ts'
import { notFound } from '../catalog/response-class.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path } from '../catalog/upstream-request.ts'
import recordings from './recordings/tech-forum.json' with { type: 'json' }

const top = record({ story_ids: field.integers('story_ids', 'Ids of the stories, as ranked') })

const story = record({
  by: field.text('by', 'Author; none on deleted items'),
  id: required.integer('id', 'Number of the item'),
  url: field.filledText('url', 'None for text posts and some jobs'),
  time: field.integer('time', 'Seconds since the epoch'),
  type: field.text('type', 'story, job, poll, pollopt or comment'),
  title: field.text('title', 'Title, HTML'),
  score: field.integer('score', 'Points'),
  descendants: field.integer('descendants', 'Number of comments'),
  text: field.filledText('text', 'Text of a comment or text post, HTML'),
  parent: field.integer('parent', 'Id of the item a comment belongs to'),
  kids: field.integers('kids', 'Ids of direct comments, as ranked'),
  dead: required.flag(({ dead }) => dead === true, 'Whether moderators or users hid it'),
  deleted: required.flag(({ deleted }) => deleted === true, 'Whether its author deleted it'),
  discussion_url: required.text(
    ({ id }) => `https://news.ycombinator.com/item?id=${integer(id)}`,
    'Page of the discussion',
  ),
})

export default upstream({
  displayName: 'Tech forum',
  category: 'news',
  description: 'Top stories of Hacker News and the stories, jobs, polls and comments behind their ids.',
  tags: ['hacker-news', 'technology', 'stories', 'startups', 'forum'],
  keywords: words('hacker news ycombinator startup programming discussion comments'),
  terms: {
    summary: 'Public API without key or rate limit. Linking back to the discussion page is good manners.',
    url: 'https://github.com/HackerNews/API',
  },
  baseUrl: 'https://hacker-news.firebaseio.com',
  // The upstream states that it has no limit; one list is followed by many items, so this limit is
  // wide.
  caps: { concurrency: 16, rates: [{ max: 1_200, seconds: 60 }] },
  probe: { request: { path: path`/v0/maxitem.json` }, everySeconds: 60 },
  // The database's own options: keys, and options that change what an answer looks like or whether
  // there is an answer.
  reservedParameters: words('auth access_token ns callback download format print shallow'),
  mayLack: words('title url text by score descendants'),
  endpoints: {
    '/topstories': endpoint({
      description: 'Ids of the current top stories (up to 500), best first. Fetch each with /story.',
      data: top,
      cache: { ...freshFor(60), staleIfErrorSeconds: lifetime.hour },
      request: () => ({ path: path`/v0/topstories.json` }),
      readFrom: ({ body }) => (Array.isArray(body) ? { story_ids: body } : undefined),
      example: recordings['/topstories'],
    }),

    '/story': endpoint({
      description: 'One item (story, job, poll, comment) by id.',
      parameters: {
        id: param.text('Item id in digits, as /topstories lists them', {
          maxLength: 10,
          pattern: '^[0-9]{1,10}$',
          // Leading zeros would name a path the database does not have.
          normalize: (_, id) => String(Number(id)),
        }),
      },
      data: story,
      cache: { ...freshFor(300), staleIfErrorSeconds: lifetime.day },
      request: ({ id }) => ({ path: path`/v0/item/${id}.json` }),
      readFrom: ({ body, parameters }) => {
        if (body === null) return notFound('There is no item with this id.')
        return integer(members(body).id) === Number(parameters.id) ? body : undefined
      },
      example: recordings['/story'],
    }),
  },
})
