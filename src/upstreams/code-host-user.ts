import Type from 'typebox'
import { field, record, required } from '../catalog/fields.ts'
import { filledText, members, text } from '../catalog/json.ts'
import { lifetime } from '../catalog/lifetimes.ts'
import { invalid } from '../catalog/response-class.ts'
import { endpoint, path, type Upstream } from '../catalog/upstream.ts'
import { github, githubProbe } from './families/github.ts'

const profile = record({
  login: required.text('login', 'Account name in its own letter case'),
  name: field.text('name', 'Display name'),
  bio: field.text('bio', 'Text about the account, by its owner'),
  followers: field.integer('followers', 'Number of followers'),
  following: field.integer('following', 'Number of accounts followed'),
  id: field.integer('id', 'Number of the account; stays when it is renamed'),
  type: field.text('type', 'User, Organization or Bot'),
  avatar_url: field.text('avatar_url', 'Picture of the account'),
  html_url: field.text('html_url', 'Page of the account'),
  company: field.text(({ company }) => filledText(company)?.trim(), 'Employer, as its owner writes it'),
  blog: field.filledText('blog', 'Website, as its owner writes it'),
  location: field.text('location', 'Place, as its owner writes it'),
  email: field.text('email', 'Given to calls with a key alone'),
  twitter_username: field.text('twitter_username', 'Name on X, formerly Twitter'),
  hireable: field.flag('hireable', 'Whether the owner is open to job offers; null where not said'),
  public_repos: field.integer('public_repos', 'Number of public repositories'),
  public_gists: field.integer('public_gists', 'Number of public gists'),
  created_at: field.text('created_at', 'UTC'),
  updated_at: field.text('updated_at', 'UTC'),
})

const codeHostUser: Upstream = {
  displayName: 'Code host user',
  category: 'developer',
  description: 'Public profile of a GitHub user or organization: name, bio, followers, public repositories.',
  tags: ['github', 'code', 'developer', 'profile', 'user'],
  keywords: ['account', 'developer', 'followers', 'organization', 'bio', 'programmer'],
  tierRequired: 'developer',
  terms: {
    summary:
      'GitHub Terms of Service, section H: no excessive or abusive use, no resale of personal information. Profiles are personal data.',
    url: 'https://docs.github.com/en/site-policy/github-terms/github-terms-of-service#h-api-terms',
  },
  // 5,000 an hour for each account; 900 a minute is GitHub's secondary limit.
  ...github('core', {
    concurrency: 8,
    rates: [
      { max: 900, seconds: 60 },
      { max: 5_000, seconds: 3_600 },
    ],
  }),
  caps: { concurrency: 4, rates: [{ max: 60, seconds: 3_600 }] },
  // Free at GitHub, but every request pays from our cap of 60 an hour.
  probe: { request: githubProbe, everySeconds: 1_800 },
  mayLack: ['name', 'company', 'blog', 'location', 'bio', 'hireable'],
  endpoints: {
    '/profile': endpoint({
      description: 'Public profile of a user, organization or bot.',
      parameters: Type.Object({
        username: Type.String({
          minLength: 1,
          // 39 at most, and five for "[bot]".
          maxLength: 44,
          pattern: '^[A-Za-z0-9_-]+(\\[bot\\])?$',
          description: 'Account name in any letter case; bots end in [bot]',
        }),
      }),
      data: profile.schema,
      // Long for 60 calls an hour, short for personal data. A 404 costs a call too.
      cache: {
        seconds: 900,
        staleIfErrorSeconds: lifetime.hour,
        notFoundSeconds: 300,
        key: ({ username }) => ({ username: username.toLowerCase() }),
      },
      request: ({ username }) => ({ path: path`/users/${username}` }),
      // The body for an unknown route leads to the front page of the documents.
      isNotFound: ({ body }) => /users.*#get-a/.test(text(members(body).documentation_url) ?? ''),
      map: ({ body }) => profile.read(body) ?? invalid(),
      example: recordedProfile(),
    }),
  },
}

export default codeHostUser

function recordedProfile() {
  return {
    parameters: { username: 'jacquev6' },
    // biome-ignore format: as recorded
    response: {
      login: 'jacquev6', id: 327146, node_id: 'MDQ6VXNlcjMyNzE0Ng==', avatar_url: 'https://avatars.githubusercontent.com/u/327146?v=4', gravatar_id: '',
      url: 'https://api.github.com/users/jacquev6', html_url: 'https://github.com/jacquev6', followers_url: 'https://api.github.com/users/jacquev6/followers',
      following_url: 'https://api.github.com/users/jacquev6/following{/other_user}', gists_url: 'https://api.github.com/users/jacquev6/gists{/gist_id}',
      starred_url: 'https://api.github.com/users/jacquev6/starred{/owner}{/repo}', subscriptions_url: 'https://api.github.com/users/jacquev6/subscriptions',
      organizations_url: 'https://api.github.com/users/jacquev6/orgs', repos_url: 'https://api.github.com/users/jacquev6/repos',
      events_url: 'https://api.github.com/users/jacquev6/events{/privacy}', received_events_url: 'https://api.github.com/users/jacquev6/received_events',
      type: 'User', user_view_type: 'public', site_admin: false, name: 'Vincent Jacques', company: null, blog: 'http://vincent-jacques.net', location: 'France',
      email: null, hireable: true, bio: null, twitter_username: null, public_repos: 38, public_gists: 18, followers: 98, following: 62,
      created_at: '2010-07-09T06:10:06Z', updated_at: '2024-10-20T07:14:52Z',
    },
    // biome-ignore format: as recorded
    data: {
      login: 'jacquev6', name: 'Vincent Jacques', bio: null, followers: 98, following: 62, id: 327146, type: 'User',
      avatar_url: 'https://avatars.githubusercontent.com/u/327146?v=4', html_url: 'https://github.com/jacquev6', company: null, blog: 'http://vincent-jacques.net',
      location: 'France', email: null, twitter_username: null, hireable: true, public_repos: 38, public_gists: 18, created_at: '2010-07-09T06:10:06Z',
      updated_at: '2024-10-20T07:14:52Z',
    },
  }
}
