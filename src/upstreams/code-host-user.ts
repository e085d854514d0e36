import Type from 'typebox'
import {
  endpoint,
  filledText,
  flag,
  integer,
  invalid,
  members,
  nullable,
  path,
  text,
  type Upstream,
} from '../catalog/upstream.ts'
import { github, githubProbe } from './families/github.ts'

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
      data: Type.Object({
        login: Type.String({ description: 'Account name in its own letter case' }),
        name: nullable(Type.String({ description: 'Display name' })),
        bio: nullable(Type.String({ description: 'Text about the account, by its owner' })),
        followers: nullable(Type.Integer({ description: 'Number of followers' })),
        following: nullable(Type.Integer({ description: 'Number of accounts followed' })),
        id: nullable(Type.Integer({ description: 'Number of the account; stays when it is renamed' })),
        type: nullable(Type.String({ description: 'User, Organization or Bot' })),
        avatar_url: nullable(Type.String({ description: 'Picture of the account' })),
        html_url: nullable(Type.String({ description: 'Page of the account' })),
        company: nullable(Type.String({ description: 'Employer, as its owner writes it' })),
        blog: nullable(Type.String({ description: 'Website, as its owner writes it' })),
        location: nullable(Type.String({ description: 'Place, as its owner writes it' })),
        email: nullable(Type.String({ description: 'Given to calls with a key alone' })),
        twitter_username: nullable(Type.String({ description: 'Name on X, formerly Twitter' })),
        hireable: nullable(
          Type.Boolean({ description: 'Whether the owner is open to job offers; null where not said' }),
        ),
        public_repos: nullable(Type.Integer({ description: 'Number of public repositories' })),
        public_gists: nullable(Type.Integer({ description: 'Number of public gists' })),
        created_at: nullable(Type.String({ description: 'UTC' })),
        updated_at: nullable(Type.String({ description: 'UTC' })),
      }),
      // Long for 60 calls an hour, short for personal data. A 404 costs a call too.
      cache: {
        seconds: 900,
        staleIfErrorSeconds: 3_600,
        notFoundSeconds: 300,
        key: ({ username }) => ({ username: username.toLowerCase() }),
      },
      request: ({ username }) => ({ path: path`/users/${username}` }),
      map: ({ body }) => {
        const user = members(body)
        const login = text(user.login)
        if (login === null) return invalid()
        return {
          login,
          name: text(user.name),
          bio: text(user.bio),
          followers: integer(user.followers),
          following: integer(user.following),
          id: integer(user.id),
          type: text(user.type),
          avatar_url: text(user.avatar_url),
          html_url: text(user.html_url),
          company: filledText(user.company)?.trim() ?? null,
          blog: filledText(user.blog),
          location: text(user.location),
          email: text(user.email),
          twitter_username: text(user.twitter_username),
          hireable: flag(user.hireable),
          public_repos: integer(user.public_repos),
          public_gists: integer(user.public_gists),
          created_at: text(user.created_at),
          updated_at: text(user.updated_at),
        }
      },
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
