import Type from 'typebox'
import { field, record, required } from '../catalog/fields.ts'
import { integer } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { invalid, notFound } from '../catalog/response-class.ts'
import { endpoint, path, type Upstream } from '../catalog/upstream.ts'

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

const techForum: Upstream = {
  displayName: 'Tech forum',
  category: 'news',
  description: 'Top stories of Hacker News and the stories, jobs, polls and comments behind their ids.',
  tags: ['hacker-news', 'technology', 'stories', 'startups', 'forum'],
  keywords: ['hacker', 'news', 'ycombinator', 'startup', 'programming', 'discussion', 'comments'],
  tierRequired: 'developer',
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
  // there is one.
  reservedParameters: ['auth', 'access_token', 'ns', 'callback', 'download', 'format', 'print', 'shallow'],
  mayLack: ['title', 'url', 'text', 'by', 'score', 'descendants'],
  endpoints: {
    '/topstories': endpoint({
      description: 'Ids of the current top stories (up to 500), best first. Fetch each with /story.',
      parameters: Type.Object({}),
      data: top.schema,
      cache: { ...freshFor(60), staleIfErrorSeconds: lifetime.hour },
      request: () => ({ path: path`/v0/topstories.json` }),
      map: ({ body }) => (Array.isArray(body) ? top.read({ story_ids: body }) : invalid()),
      example: recordedTopstories(),
    }),

    '/story': endpoint({
      description: 'One item (story, job, poll, comment) by id.',
      parameters: Type.Object({
        id: Type.String({
          minLength: 1,
          maxLength: 10,
          pattern: '^[0-9]{1,10}$',
          description: 'Item id in digits, as /topstories lists them',
        }),
      }),
      data: story.schema,
      cache: { ...freshFor(300), staleIfErrorSeconds: lifetime.day },
      // Leading zeros would name a path the database does not have.
      complete: (parameters) => ({ ...parameters, id: String(Number(parameters.id)) }),
      request: ({ id }) => ({ path: path`/v0/item/${id}.json` }),
      map: ({ body }) => (body === null ? notFound('There is no item with this id.') : (story.read(body) ?? invalid())),
      example: recordedStory(),
    }),
  },
}

export default techForum

function recordedTopstories() {
  return {
    parameters: {},
    // biome-ignore format: as recorded
    response: [9129911, 9129199, 9127761, 9128141, 9128264, 9127792, 9129248, 9127092, 9128367, 9038733],
    // biome-ignore format: as recorded
    data: { story_ids: [9129911, 9129199, 9127761, 9128141, 9128264, 9127792, 9129248, 9127092, 9128367, 9038733] },
  }
}

function recordedStory() {
  return {
    parameters: { id: '8863' },
    // biome-ignore format: as recorded
    response: {
      by: 'dhouston', descendants: 71, id: 8863, kids: [8952, 9224, 8917], score: 111, time: 1175714200,
      title: 'My YC app: Dropbox - Throw away your USB drive', type: 'story', url: 'http://www.getdropbox.com/u/2/screencast.html',
    },
    // biome-ignore format: as recorded
    data: {
      by: 'dhouston', id: 8863, url: 'http://www.getdropbox.com/u/2/screencast.html', time: 1175714200, type: 'story',
      title: 'My YC app: Dropbox - Throw away your USB drive', score: 111, descendants: 71, text: null, parent: null, kids: [8952, 9224, 8917],
      dead: false, deleted: false, discussion_url: 'https://news.ycombinator.com/item?id=8863',
    },
  }
}
