package tfschema

import (
	"strings"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// checkConfig holds a provider block to what the provider takes.
func (c *checker) checkConfig(block *hclsyntax.Block) {
	name := block.Labels[0]
	p, ok := c.facts[name]
	switch {
	case !ok:
		c.fault(block.LabelRanges[0], "nothing is known about the provider %q%s", name, didYouMean(name, c.facts))
	case p.Config == nil:
		c.fault(block.LabelRanges[0], "nothing is known about the configuration of the provider %q", name)
	default:
		c.checkBody(block.Body, p.Config, nil, block.DefRange(), map[string]bool{"alias": true}, nil)
		return
	}
	c.blind = true
	c.free(block.Body, nil)
}

// users are the providers that the module uses, with where: for its own
// resources, for modules that it calls, or by configuring them.
func (c *checker) users() map[string]*hclsyntax.Block {
	used := map[string]*hclsyntax.Block{}
	for _, named := range c.objects {
		for _, o := range named {
			name, _, _ := strings.Cut(o.typ, "_")
			used[name] = o.block
		}
	}
	for _, block := range c.configs {
		used[block.Labels[0]] = block
	}
	return used
}

// checkProviders holds required_providers to what is used and to the release
// that the facts are of.
func (c *checker) checkProviders() {
	used := c.users()
	for name, block := range used {
		if _, ok := c.module.Providers[name]; !ok && name != "terraform" && c.facts[name] != nil {
			c.fault(block.DefRange(), "required_providers does not name %q", name)
		}
	}
	for _, block := range c.calls {
		if callee := c.callee(block); callee != nil {
			for name := range callee.Providers {
				used[name] = block // by its own name, which need not be this module's
			}
		}
	}
	for name, r := range c.module.Providers {
		p, ok := c.facts[name]
		switch {
		case used[name] == nil:
			c.fault(r.At, "the provider %q is required, but not used", name)
		case !ok:
		case r.Source != p.Source:
			c.fault(r.At, "the source of %q is %q, not %q", name, p.Source, r.Source)
		default:
			c.checkVersion(name, r, p)
		}
	}
}

func (c *checker) checkVersion(name string, r Requirement, p *Provider) {
	constraints, err := version.NewConstraint(r.Version)
	if err != nil {
		c.fault(r.At, "the version of %q: %s", name, err)
		return
	}
	v, err := version.NewVersion(p.Version)
	if err != nil {
		c.fault(r.At, "the facts about %q are of no version: %s", name, err)
		return
	}
	if !constraints.Check(v) {
		c.fault(r.At, "the facts about %q are of %s, which %q does not allow", name, p.Version, r.Version)
	}
}
