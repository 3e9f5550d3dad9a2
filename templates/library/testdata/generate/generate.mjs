// Writes ../schemas/*.json: what the providers' schemas say about the resources
// and data sources that the library uses, and about the providers' own blocks.
// See README.md.
import {execFileSync} from 'node:child_process';
import {existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {cdktfFacts} from './cdktf.mjs';
import {linodeFacts} from './linode.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const library = join(here, '..', '..');

// The packages, pinned: a new version is a reviewed change of the facts.
const providers = {
  aws: {package: '@cdktf/provider-aws@21.22.1', facts: cdktfFacts},
  azurerm: {package: '@cdktf/provider-azurerm@14.23.1', facts: cdktfFacts},
  digitalocean: {package: '@cdktf/provider-digitalocean@13.14.1', facts: cdktfFacts},
  google: {package: '@cdktf/provider-google@16.12.1', facts: cdktfFacts},
  helm: {package: '@cdktf/provider-helm@12.1.2', facts: cdktfFacts},
  kubernetes: {package: '@cdktf/provider-kubernetes@12.1.1', facts: cdktfFacts},
  linode: {package: '@pulumi/linode@5.1.1', facts: linodeFacts},
};

// used returns the types that the library's modules name, by provider.
function used() {
  const types = {};
  for (const entry of readdirSync(library, {recursive: true, withFileTypes: true})) {
    const dir = entry.parentPath ?? entry.path;
    if (!entry.isFile() || !entry.name.endsWith('.tf') || dir.includes('testdata')) continue;
    const text = readFileSync(join(dir, entry.name), 'utf8');
    for (const [, kind, type] of text.matchAll(/^\s*(resource|data)\s+"([a-z0-9_]+)"/gm)) {
      const provider = type.split('_')[0];
      if (!(provider in providers)) continue;
      types[provider] ??= {resource: new Set(), data: new Set()};
      types[provider][kind].add(type);
    }
  }
  return types;
}

// fetch unpacks a package below the folder, unless it is there already.
function fetch(folder, spec) {
  const dir = join(folder, spec.replace(/[@/]+/g, '-').replace(/^-/, ''));
  if (!existsSync(dir)) {
    mkdirSync(dir, {recursive: true});
    const [{filename}] = JSON.parse(execFileSync('npm', ['pack', '--json', '--pack-destination', dir, spec],
      {encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore']}));
    execFileSync('tar', ['xzf', join(dir, filename.replace('/', '-').replace(/^@/, '')), '-C', dir]);
  }
  return join(dir, 'package');
}

const sorted = (value) => value && typeof value === 'object' && !Array.isArray(value)
  ? Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])])) : value;

// A package folder that is given is kept, so that the next call downloads nothing.
const folder = process.argv[2] ?? mkdtempSync(join(tmpdir(), 'schemas-'));
const files = {};
try {
  for (const [name, types] of Object.entries(used())) {
    const {package: spec, facts} = providers[name];
    const {source, version, config, resources, data_sources} = facts(fetch(folder, spec),
      {resources: [...types.resource].sort(), dataSources: [...types.data].sort()});
    files[`${name}.json`] = JSON.stringify(
      {package: spec, provider: name, source, version, config: sorted(config), resources: sorted(resources), data_sources: sorted(data_sources)}, null, 1) + '\n';
  }
} finally {
  if (!process.argv[2]) rmSync(folder, {recursive: true, force: true});
}

// All or nothing: the old facts go when the new ones are complete.
const schemas = join(here, '..', 'schemas');
rmSync(schemas, {recursive: true, force: true});
mkdirSync(schemas, {recursive: true});
for (const [name, text] of Object.entries(files)) writeFileSync(join(schemas, name), text);
